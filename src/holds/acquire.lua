-- Takes a voucher's lease, or tells whose it is. Time is this server's own, so a lease's age needs no agreement of clocks.
-- A lease older than ARGV[4] is taken over: the caller has just seen that no live hold stands behind it.
-- KEYS[1] lease; ARGV[1] ticket, ARGV[2] key id, ARGV[3] lifetime in ms, ARGV[4] orphan age in ms
-- Answers {1} when taken, else {0, ticket, key id} of the holder.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('HMGET', KEYS[1], 'ticket', 'key', 'start')
if held[1] and now - tonumber(held[3]) <= tonumber(ARGV[4]) then
  return {0, held[1], held[2]}
end
redis.call('HSET', KEYS[1], 'ticket', ARGV[1], 'key', ARGV[2], 'start', now)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1}
