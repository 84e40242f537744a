-- KEDA reports its health in the conditions Paused, Fallback and Ready. Before it sets those, Running has the message.
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

local function health(status, condition)
  return { status = status, message = condition.message or "" }
end

local ready = find("Ready")
if find("Paused").status == "True" then
  return health("Suspended", find("Paused"))
elseif find("Fallback").status == "True" then
  return health("Degraded", find("Fallback"))
elseif ready.status == "True" then
  return health("Healthy", ready)
elseif ready.message ~= nil then
  return health("Degraded", ready)
end
return health("Progressing", find("Running"))
