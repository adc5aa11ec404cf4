-- Writes the lease of a live reservation when it is missing or belongs to another ticket, because the reservation's row in Postgres decides.
-- KEYS[1] lease; ARGV[1] ticket, ARGV[2] key id, ARGV[3] the reservation's age in ms, ARGV[4] its remaining time in ms
-- Returns 1 when restored, 0 when the lease already belonged to this ticket.
if redis.call('HGET', KEYS[1], 'ticket') == ARGV[1] then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], 'ticket', ARGV[1], 'key', ARGV[2], 'start', now - ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
