-- Deletes a lease if it still belongs to this ticket.
-- KEYS[1] lease; ARGV[1] ticket
-- Returns 1 when deleted, else 0.
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, string.len(ARGV[1]) + 1) == ARGV[1] .. ' ' then
  return redis.call('DEL', KEYS[1])
end
return 0
