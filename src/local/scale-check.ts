import { parseArgs } from "node:util";
import { openAdminContext } from "../acts/open-acts.ts";
import { ConfigError, readAddress, readGivenServers } from "../platform/config.ts";
import { openLogger } from "../platform/logger.ts";
import { markAsCluster } from "../platform/redis/addresses.ts";
import { openFailFast, untilReady } from "../platform/redis/connections.ts";
import { checkRedis } from "../platform/redis/requirements.ts";
import { assertSameServers, findStart, LOCAL_DIRECTORY, withLastStart } from "./directory.ts";
import { type LoadResult, runLoad } from "./scale-load.ts";
import { openMeters } from "./scale-meters.ts";
import { showScale } from "./scale-report.ts";
import { openSupply } from "./scale-supply.ts";
import { findRunningServers } from "./servers.ts";

// `npm run scale-check`: puts a limited load on a sandbox, and finds the part of the service that is the limit.

const HELP = `Usage: npm run scale-check [-- options]

Redeems vouchers of a sandbox for some seconds, and says which part of the
service is the limit now: API, worker, Redis or Postgres. Works on the servers
of DATABASE_URL and REDIS_URL, or on those of the running npm start. The load
takes capacity from partners while it runs.

  --url URL       an API's address, once for each API; default: npm start's
  --org ID        a sandbox of yours; default: one that it makes itself
  --seconds N     length of the load, 20 to 60; default: 20
  --callers N     concurrent calls, 1 to 512; default: 64
  --vouchers N    vouchers to issue, 100 to 200000; default: 30000
  --json          print one JSON object

Exit status: 0 done, 1 not done, 2 wrong usage, 78 no servers.`;

const OPTIONS = {
  help: { type: "boolean", short: "h", default: false },
  url: { type: "string", multiple: true, default: [] as string[] },
  org: { type: "string" },
  seconds: { type: "string", default: "20" },
  callers: { type: "string", default: "64" },
  vouchers: { type: "string", default: "30000" },
  json: { type: "boolean", default: false },
} as const;
const BOUNDS = { seconds: [20, 60], callers: [1, 512], vouchers: [100, 200_000] } as const;

/** Processes record their use every ten seconds. Of a shorter load, the records tell the time before it. Seconds. */
const LOAD_MIN_SECONDS = 20;
/** Longest wait for Redis. Milliseconds. */
const REDIS_MAX_MS = 10_000;

const given = readOptions();
try {
  await check(given);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = error instanceof ConfigError ? 78 : 1;
}

function readOptions() {
  try {
    const { values } = parseArgs({ options: OPTIONS });
    if (values.help) {
      console.log(HELP);
      process.exit(0);
    }
    const number = (name: keyof typeof BOUNDS) => {
      const [min, max] = BOUNDS[name];
      const value = /^\d+$/.test(values[name]) ? Number(values[name]) : -1;
      if (value < min || value > max) throw new Error(`--${name} must be a number from ${min} to ${max}.`);
      return value;
    };
    return { ...values, seconds: number("seconds"), callers: number("callers"), vouchers: number("vouchers") };
  } catch (error) {
    console.error(`${(error as Error).message.replace(/\. .*$/s, ".")}\n\n${HELP}`);
    process.exit(2);
  }
}

/** The servers of the environment or of the running `npm start`. @throws ConfigError */
function findServers(env: NodeJS.ProcessEnv) {
  const servers = readGivenServers(env);
  if (servers.databaseUrl !== null && servers.redisUrl !== null) return { ...servers };
  assertSameServers(servers);
  if (findStart(LOCAL_DIRECTORY) !== null) return findRunningServers(servers);
  throw new ConfigError("Start the service first: npm start. Or set DATABASE_URL and REDIS_URL.");
}

async function check(options: ReturnType<typeof readOptions>): Promise<void> {
  const env = withLastStart(process.env);
  const { databaseUrl, redisUrl } = findServers(env) as { databaseUrl: string; redisUrl: string };
  const log = openLogger("fatal", "scale-check");
  const admin = openAdminContext(databaseUrl, log);
  const { isCluster } = await checkRedis(redisUrl, 1, REDIS_MAX_MS);
  const redis = openFailFast(isCluster ? markAsCluster(redisUrl) : redisUrl, "scale-check", log, REDIS_MAX_MS);
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stopping.abort());
  try {
    await untilReady(redis, REDIS_MAX_MS);
    const urls = options.url.length > 0 ? options.url : [`http://127.0.0.1:${readAddress(env).port}`];
    if (!options.json) console.error(`Issuing ${options.vouchers} vouchers of a sandbox.`);
    const supply = await openSupply(admin, options.org ?? null, options.vouchers);
    try {
      const { seconds, callers } = options;
      if (!options.json) console.error(`${callers} callers redeem for ${seconds} seconds.`);
      const meters = await openMeters(admin.pool, redis);
      const result = await runLoad({ ...supply, urls, callers, seconds, signal: stopping.signal });
      const measured = await meters.read();
      stopping.signal.throwIfAborted();
      assertUsable(result);
      console.log(showScale({ ...result, ...measured, callers, organization: supply.organizationId }, options.json));
    } finally {
      await supply.end();
    }
  } finally {
    redis.disconnect();
    await admin.close();
  }
}

/** @throws Error when the load was not enough to judge the service. */
function assertUsable({ redemptions, refusals, isCut, seconds }: LoadResult): void {
  const refused = Object.entries(refusals).map(([code, count]) => `${count} ${code}`);
  if (redemptions === 0) throw new Error(`No call redeemed a voucher: ${refused.join(", ") || "none was sent"}.`);
  if (isCut && seconds < LOAD_MIN_SECONDS) {
    throw new Error(`All vouchers were redeemed within ${seconds.toFixed(1)} seconds. Give more: --vouchers.`);
  }
}
