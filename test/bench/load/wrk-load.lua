-- Drives load with wrk (https://github.com/wg/wrk, SCRIPTING). Each thread talks to one API process and reads its own file of prepared
-- requests. Arguments: mode, request files' common beginning, header of every request, ports separated by commas.
-- Modes: once (each request is sent once; the rest of the run is a mistake), again (from the beginning when the file ends),
-- checkout (each line is a code and a reference: look up, reserve, redeem by ticket).

local ffi = require("ffi")
ffi.cdef [[ typedef struct { long seconds; long nanoseconds; } bench_timespec; int clock_gettime(int clock, bench_timespec *time); ]]
local CLOCK_MONOTONIC = 1

local threads = {}
local ports = {}

function setup(thread)
  if #threads == 0 then
    for port in (os.getenv("BENCH_PORTS") or ""):gmatch("%d+") do table.insert(ports, port) end
  end
  local index = #threads % #ports + 1
  thread:set("index", index)
  thread.addr = wrk.lookup("127.0.0.1", ports[index])[1]
  table.insert(threads, thread)
end

-- What follows runs in each thread.

used = 0
exhausted = 0
refused = 0
finished = 0
samples = {}

local mode, file, header
local waiting = {}
local waitingFirst, waitingLast = 1, 0
local byCode, byVoucher = {}, {}
local time = ffi.new("bench_timespec")

local function micros()
  ffi.C.clock_gettime(CLOCK_MONOTONIC, time)
  return tonumber(time.seconds) * 1e6 + tonumber(time.nanoseconds) / 1e3
end

local function build(target, extra, body)
  local head = target .. " HTTP/1.1\r\nHost: localhost\r\n" .. header .. extra
  if body == "" then return head .. "\r\n" end
  return head .. "Content-Type: application/json\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
end

local NOTHING = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"

local function nextLine()
  local line = file:read("*l")
  if line == nil and mode == "again" then
    file:seek("set", 0)
    line = file:read("*l")
  end
  if line == nil then exhausted = 1 else used = used + 1 end
  return line
end

local function simpleRequest()
  local line = nextLine()
  if line == nil then return NOTHING end
  local target, extra, body = line:match("^([^\t]*)\t([^\t]*)\t(.*)$")
  if extra ~= "" then extra = extra .. "\r\n" end
  return build(target, extra, body)
end

local function checkoutRequest()
  if waitingFirst <= waitingLast then
    local request = waiting[waitingFirst]
    waiting[waitingFirst] = nil
    waitingFirst = waitingFirst + 1
    return request
  end
  local line = nextLine()
  if line == nil then return NOTHING end
  local code, reference = line:match("^([^\t]*)\t(.*)$")
  byCode[code] = { code = code, reference = reference, startedAt = micros() }
  return build("GET /partner/vouchers/" .. code, "", "")
end

local function enqueue(request)
  waitingLast = waitingLast + 1
  waiting[waitingLast] = request
end

-- The answers tell which step they are of: any connection carries any checkout's next step.
local function checkoutResponse(status, _, body)
  if status ~= 200 then
    refused = refused + 1
    return
  end
  local code = body:match('"code":"([^"]+)"')
  if code ~= nil then
    local checkout = byCode[code]
    byCode[code] = nil
    byVoucher[body:match('"id":"([^"]+)"')] = checkout
    return enqueue(build("POST /partner/vouchers/reserve", "", '{"code":"' .. code .. '"}'))
  end
  local held = body:match('"voucher":"([^"]+)"')
  if held ~= nil then
    local ticket = body:match('"ticket":"([^"]+)"')
    local fields = '{"ticket":"' .. ticket .. '","externalRef":"' .. byVoucher[held].reference .. '"}'
    return enqueue(build("POST /partner/vouchers/redeem", "", fields))
  end
  local burnt = body:match('"voucherInstanceId":"([^"]+)"')
  if burnt ~= nil then
    finished = finished + 1
    samples[finished] = micros() - byVoucher[burnt].startedAt
    byVoucher[burnt] = nil
  end
end

function init(args)
  mode = args[1]
  file = assert(io.open(args[2] .. index, "r"))
  header = args[3]
  if header ~= "" then header = header .. "\r\n" end
  if mode == "checkout" then
    request = checkoutRequest
    response = checkoutResponse
  else
    request = simpleRequest
  end
end

function done(summary, latency, _)
  local usedOf, samplesOf, wasExhausted, finishedAll = {}, {}, 0, 0
  for _, thread in ipairs(threads) do
    table.insert(usedOf, thread:get("used"))
    wasExhausted = wasExhausted + thread:get("exhausted")
    finishedAll = finishedAll + thread:get("finished")
    for _, sample in ipairs(thread:get("samples")) do table.insert(samplesOf, sample) end
  end
  local p50, p99 = latency:percentile(50), latency:percentile(99)
  if #samplesOf > 0 then
    table.sort(samplesOf)
    p50 = samplesOf[math.ceil(#samplesOf * 0.5)]
    p99 = samplesOf[math.ceil(#samplesOf * 0.99)]
  end
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"checkouts":%d,"micros":%d,"p50Micros":%d,"p99Micros":%d,"refused":%d,"broken":%d,"exhausted":%s,"used":[%s]}\n',
    summary.requests, finishedAll, summary.duration, p50, p99, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, tostring(wasExhausted > 0), table.concat(usedOf, ",")))
end
