-- Acquires a voucher's lease, or returns its holder. Uses this server's clock, because those of the API's machines can differ.
-- Replaces a lease that started more than ARGV[4] ago: the caller has just read that the voucher has no live reservation. Also replaces
-- one that starts more than ARGV[4] in the future, which is possible after this clock was set back.
-- KEYS[1] lease; ARGV[1] ticket, ARGV[2] key id, ARGV[3] lifetime in ms, ARGV[4] orphan age in ms
-- Returns {1} when acquired, else {0, ticket, key id} of the holder.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('HMGET', KEYS[1], 'ticket', 'key', 'start')
if held[1] and math.abs(now - tonumber(held[3])) <= tonumber(ARGV[4]) then
  return {0, held[1], held[2]}
end
redis.call('HSET', KEYS[1], 'ticket', ARGV[1], 'key', ARGV[2], 'start', now)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1}
