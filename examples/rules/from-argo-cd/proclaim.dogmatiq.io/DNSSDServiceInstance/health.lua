-- An instance is adopted, then advertised, then discoverable: the first step that is not True decides.
-- Adopted and Advertised decide only if they are False.
-- A condition of an earlier generation is ignored.
local conditions = { Adopted = {}, Advertised = {}, Discoverable = {} }
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  if condition.observedGeneration == obj.metadata.generation then
    conditions[condition.type] = condition
  end
end

for _, step in ipairs({ "Adopted", "Advertised" }) do
  if conditions[step].status == "False" then
    return { status = "Degraded", message = conditions[step].message }
  end
end

local health = { True = "Healthy", False = "Progressing", Unknown = "Unknown" }
local discoverable = conditions.Discoverable
return {
  status = health[discoverable.status] or "Progressing",
  message = discoverable.message or "discovery not reported yet",
}
