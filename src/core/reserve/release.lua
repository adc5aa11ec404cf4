-- Deletes a lease if it still belongs to this ticket.
-- KEYS[1] lease; ARGV[1] ticket
-- Returns 1 when deleted, else 0.
if redis.call('HGET', KEYS[1], 'ticket') == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
