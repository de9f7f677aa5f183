-- Takes one request from the allowance of a key. The value keeps the times of the
-- requests that were let through, in microseconds, 8 bytes each, the oldest first.
-- Arguments: the limit's requests and window in microseconds, how long the value is
-- kept in milliseconds, 1 to take or 0 to look only, and, in tests, the time.
-- Returns nothing if the request is let through, and otherwise its time and those
-- that are kept.
local requests, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local now = tonumber(ARGV[5])
if not now then
	local time = redis.call('TIME')
	now = time[1] * 1000000 + time[2]
end
local kept = redis.call('GET', KEYS[1]) or ''
if kept ~= '' then -- a clock that was set back stands still, for a window at most
	local last = struct.unpack('<d', kept, #kept - 7)
	if last > now + window then kept = '' elseif last > now then now = last end
end
if #kept >= 8 * requests then -- it has more if the limit was higher before
	kept = string.sub(kept, #kept - 8 * requests + 1)
	if now - struct.unpack('<d', kept) < window then return struct.pack('<d', now) .. kept end
	kept = string.sub(kept, 9)
end
if ARGV[4] == '1' then
	redis.call('SET', KEYS[1], kept .. struct.pack('<d', now), 'PX', ARGV[3])
end
return ''
