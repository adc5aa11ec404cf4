import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { pino } from "pino";
import { spendLimit } from "../../src/http/spend-limit.ts";
import { openLimits } from "../../src/limits/open-limits.ts";
import { openFailFast } from "../../src/queues/connections.ts";
import { until } from "../support/until.ts";
import { openBenchServers } from "./servers.ts";

// `node test/bench/limit-cost.ts`: what the limits cost a call that they let through, in CPU time of the API process. Each kind takes
// turns with the same work without a limit; the medians of the turns are compared.

const CALLS = 50_000;
const TURNS = 15;

const servers = await openBenchServers((line) => process.stderr.write(`${line}\n`));
const log = pino({ level: "silent" });
const redis = openFailFast(servers.redisUrl(1), "limit-cost", log);
try {
  await until(() => redis.status === "ready");
  const limits = openLimits({ rateLimitRps: 1_000_000, missLimitPerMinute: 60 }, redis, log);
  const request = new IncomingMessage(new Socket());
  const spend = (limiter: typeof limits.read) => spendLimit(new ServerResponse(request), limiter, "key");
  const lookUp = async () => true;
  await compare(
    "rate limit and its fields",
    () => spend(null),
    () => spend(limits.read),
  );
  await compare("miss limit on a hit", lookUp, async () => limits.misses?.guard("key", lookUp, (hit) => !hit));
} finally {
  redis.disconnect();
  await servers.close();
}

async function compare(what: string, without: () => Promise<unknown>, limited: () => Promise<unknown>): Promise<void> {
  const before: number[] = [];
  const after: number[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    before.push(await measure(without));
    after.push(await measure(limited));
  }
  const [off, on] = [median(before), median(after)];
  process.stdout.write(
    `${what}: ${on.toFixed(2)} µs with, ${off.toFixed(2)} µs without, ${(on - off).toFixed(2)} µs more\n`,
  );
}

/** CPU time of one call, in microseconds. */
async function measure(call: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < CALLS; i++) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
