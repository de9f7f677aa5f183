-- Sends each request from another reader. Arguments: the path, how many
-- readers there are, "numbered" to put the request's number into the domain as
-- well, the number of the first reader, and how many hosts to ask in turn.
local path, readers, numbered, n, first, hosts

function init(args)
	path, readers, numbered, n = args[1], tonumber(args[2]), args[3] == "numbered", 0
	first, hosts = tonumber(args[4]) or 0, tonumber(args[5]) or 0
end

function request()
	local r = (first + n % readers) % 16777216
	wrk.headers["X-Forwarded-For"] = string.format("10.%d.%d.%d", r / 65536, r / 256 % 256, r % 256)
	if hosts > 0 then
		wrk.headers["Host"] = string.format("site-%d.example", n % hosts)
	end
	n = n + 1
	if numbered then
		return wrk.format("GET", string.format(path, n))
	end
	return wrk.format("GET", path)
end
