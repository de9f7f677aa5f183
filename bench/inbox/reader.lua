-- Sends each request from another reader. Arguments: the path, how many
-- readers there are, and "numbered" to put the request's number into the
-- domain as well.
local path, readers, numbered, n

function init(args)
	path, readers, numbered, n = args[1], tonumber(args[2]), args[3] == "numbered", 0
end

function request()
	local r = n % readers
	wrk.headers["X-Forwarded-For"] = string.format("10.%d.%d.%d", r / 65536, r / 256 % 256, r % 256)
	n = n + 1
	if numbered then
		return wrk.format("GET", string.format(path, n))
	end
	return wrk.format("GET", path)
end
