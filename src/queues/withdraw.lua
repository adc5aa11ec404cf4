-- Takes a job back if no worker has ever started it, and tells whether it did. Reads BullMQ's own keys: the wait list, and the
-- field `ats` (attempts started) of the job's hash, which stays when a stalled job is put back.
-- KEYS[1] wait list, KEYS[2] job hash; ARGV[1] job id
if redis.call('HEXISTS', KEYS[2], 'ats') == 1 then
  return 0
end
if redis.call('LREM', KEYS[1], 1, ARGV[1]) == 0 then
  return 0
end
redis.call('DEL', KEYS[2])
return 1
