-- Restores the marker on which idle workers block, if jobs wait: a killed worker may have taken it. Reads BullMQ's
-- own keys, and writes the marker in BullMQ's form.
-- KEYS[1] wait list, KEYS[2] meta, KEYS[3] marker
if redis.call('LLEN', KEYS[1]) > 0 and redis.call('HEXISTS', KEYS[2], 'paused') == 0 then
  redis.call('ZADD', KEYS[3], 0, '0')
end
