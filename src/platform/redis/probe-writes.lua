-- Writes as a reservation does (a text with an expiry) and as a job does (a hash, a list, a sorted set, a stream), and
-- removes all of it. If the server refuses a write in the middle, the rest expires.
-- KEYS[1] a key that nothing else uses
for _, write in ipairs({
  {'SET', KEYS[1], '1'}, {'HSET', KEYS[1], 'probe', '1'}, {'LPUSH', KEYS[1], 'probe'}, {'ZADD', KEYS[1], 0, 'probe'}, {'XADD', KEYS[1], '*', 'probe', '1'},
}) do
  redis.call(unpack(write))
  redis.call('PEXPIRE', KEYS[1], 10000)
  redis.call('DEL', KEYS[1])
end
