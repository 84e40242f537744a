-- An instance is adopted, then advertised, then discovered: the first step that did not succeed tells its health.
local found = { Adopted = {}, Advertised = {}, Discoverable = {} }
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  if condition.observedGeneration == obj.metadata.generation then
    found[condition.type] = condition
  end
end

for _, step in ipairs({ "Adopted", "Advertised" }) do
  if found[step].status == "False" then
    return { status = "Degraded", message = found[step].message }
  end
end

local words = { True = "Healthy", False = "Progressing", Unknown = "Unknown" }
local seen = found.Discoverable
return {
  status = words[seen.status] or "Progressing",
  message = seen.message or "nobody has looked for it yet",
}
