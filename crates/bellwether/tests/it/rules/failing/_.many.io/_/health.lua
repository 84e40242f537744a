return { status = "Suspended", message = obj.kind .. " rests since " .. obj.status.since }
