-- Replaces the data of the jobs that still exist. KEYS: jobs of one shard. ARGV: the data that each one keeps.
for i, job in ipairs(KEYS) do
  if redis.call("EXISTS", job) == 1 then redis.call("HSET", job, "data", ARGV[i]) end
end
