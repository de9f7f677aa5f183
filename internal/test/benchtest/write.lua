-- Creates and updates members. Arguments: "create", "update" or "both", a number
-- that no other run has, how many members there are to update, and how many keys
-- to use.
local kind, run, members, keys, n
local threads = {}
failed = ""

function setup(thread)
	table.insert(threads, thread)
end

function init(args)
	kind, run, members, keys, n = args[1], args[2], tonumber(args[3]), tonumber(args[4]), 0
	wrk.headers["Content-Type"] = "application/json"
end

-- Consecutive numbers lie far from each other in the index, as in benchtest.Email.
local function address(n, suffix)
	return string.format("%010d-%d%s@example.com", n * 2654435761 % 4294967296, n, suffix)
end

function request()
	n = n + 1
	wrk.headers["Authorization"] = string.format("Bearer key-%03d-0123456789abcdef0123456789abcdef", n % keys)
	if kind == "create" or kind == "both" and n % 2 == 0 then
		return wrk.format("POST", "/integration/members", nil, string.format(
			'{"email":"%s","name":"Jane Doe %d","note":"Came from the CRM, where she has been known since spring.","labels":["VIP","crm"]}',
			address(n, "-" .. run), n))
	end
	return wrk.format("PUT", "/integration/members/" .. address(n * 7 % members + 1, ""), nil, string.format(
		'{"name":"Jane Doe %d","note":"Came from the CRM, where she has been known since spring.","labels":["VIP","crm"]}', n))
end

function response(status, headers, body)
	if status ~= 200 or not string.find(body, '"success":true', 1, true) then
		failed = status .. " " .. body
	end
end

function done()
	for _, thread in ipairs(threads) do
		if thread:get("failed") ~= "" then
			print("failed: " .. thread:get("failed"))
		end
	end
end
