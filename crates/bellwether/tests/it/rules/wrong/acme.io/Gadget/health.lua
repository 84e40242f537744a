local hs = {}
if obj.status.phase != "Up" then
  hs.status = "Progressing"
end
return hs
