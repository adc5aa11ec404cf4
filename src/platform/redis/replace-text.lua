-- Writes ARGV[2] unless another process has written KEYS[1] since it was ARGV[1], where '' stands for a missing key.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
