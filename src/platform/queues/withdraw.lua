-- Removes a job that no worker has started. Reads BullMQ's own keys: the wait list, and the field `ats` (attempts started) of the
-- job's hash, which remains when a stalled job returns to the list. Searches from the end with the oldest jobs.
-- KEYS[1] wait list, KEYS[2] job hash; ARGV[1] job id
if redis.call('HEXISTS', KEYS[2], 'ats') == 0 and redis.call('LREM', KEYS[1], -1, ARGV[1]) == 1 then
  redis.call('DEL', KEYS[2])
end
