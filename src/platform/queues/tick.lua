-- Counts a tick of this process if no job waits and no other process has ticked since this process's last tick. Compares no clocks. If Redis
-- has lost the counter, this process's tick is counted.
-- Returns the tick counter, and 1 if the tick was counted: this process must then add a job. Otherwise the second value is 0.
-- KEYS[1] counter, KEYS[2] wait list; ARGV[1] the counter at this process's last tick, empty at its first
local seen = redis.call('GET', KEYS[1])
if seen and seen ~= ARGV[1] then
  return {seen, 0}
end
if redis.call('LLEN', KEYS[2]) > 0 then
  return {ARGV[1], 0}
end
return {tostring(redis.call('INCR', KEYS[1])), 1}
