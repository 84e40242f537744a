local hs = {status = "Progressing", message = "waiting"}
if obj.status ~= nil and obj.status.phase == "Up" then
  hs.status = "Healthy"
  hs.message = obj.status.message
end
return hs
