-- What KEDA says of itself is in four conditions: Paused, Fallback, Ready and, before those, Running.
local function find(kind)
  if obj.status ~= nil and obj.status.conditions ~= nil then
    for _, condition in ipairs(obj.status.conditions) do
      if condition.type == kind then
        return condition
      end
    end
  end
  return { status = "Unknown" }
end

local function say(status, condition)
  return { status = status, message = condition.message or "" }
end

local ready = find("Ready")
if find("Paused").status == "True" then
  return say("Suspended", find("Paused"))
elseif find("Fallback").status == "True" then
  return say("Degraded", find("Fallback"))
elseif ready.status == "True" then
  return say("Healthy", ready)
elseif ready.message ~= nil then
  return say("Degraded", ready)
end
return say("Progressing", find("Running"))
