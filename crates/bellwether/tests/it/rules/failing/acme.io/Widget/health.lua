local hs = { status = "Progressing", message = "waiting for the phase" }
if obj.status.phase == "Up" then
  hs.status = "Healthy"
  hs.message = "it is up"
elseif obj.status.phase == "Stuck" then
  while true do end
end
return hs
