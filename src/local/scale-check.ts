import { cpus, hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { Pool } from "undici";
import { createBrand } from "../acts/brand/create.ts";
import { writeBatch } from "../acts/issue-batch.ts";
import { createKey } from "../acts/key/create.ts";
import { revokeApiKey } from "../acts/key/revoke.ts";
import { type AdminContext, openAdminContext } from "../acts/open-acts.ts";
import { createOrganization } from "../acts/org/create.ts";
import { createProduct } from "../acts/product/create.ts";
import { type AuditContext, auditedCommand } from "../acts/with-audit-entry.ts";
import { findNamesake, findOrganization } from "../core/catalog/db/catalog.ts";
import { NO_CAPS } from "../core/keys/db/api-keys.ts";
import { readProcesses, type ServiceProcess } from "../core/processes/db/processes.ts";
import { ConfigError, readAddress, readGivenServers } from "../platform/config.ts";
import { readWorkingSessions } from "../platform/db/working-sessions.ts";
import { openLogger } from "../platform/logger.ts";
import { markAsCluster } from "../platform/redis/addresses.ts";
import { mastersOf, openFailFast, type RedisClient, untilReady } from "../platform/redis/connections.ts";
import { checkRedis } from "../platform/redis/requirements.ts";
import { assertSameServers, findStart, LOCAL_DIRECTORY, withLastStart } from "./directory.ts";
import { readArguments, readNumber } from "./read-arguments.ts";
import { findRunningServers } from "./servers.ts";

// `npm run scale-check`: puts a limited load on a sandbox, and finds the part of the service that limits its
// throughput.

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
  url: { type: "string", multiple: true, default: [] as string[] },
  org: { type: "string" },
  seconds: { type: "string", default: "20" },
  callers: { type: "string", default: "64" },
  vouchers: { type: "string", default: "30000" },
  json: { type: "boolean", default: false },
} as const;

/**
 * Minimum duration of a load. Processes record every ten seconds how busy they are, so after a shorter load the records
 * would still describe the time before the load. Seconds.
 */
const LOAD_MIN_SECONDS = 20;
/** Maximum wait for Redis. Milliseconds. */
const REDIS_MAX_MS = 10_000;

const readOptions = () =>
  readArguments(OPTIONS, HELP, ({ seconds, callers, vouchers, ...others }) => ({
    ...others,
    seconds: readNumber("seconds", seconds, LOAD_MIN_SECONDS, 60),
    callers: readNumber("callers", callers, 1, 512),
    vouchers: readNumber("vouchers", vouchers, 100, 200_000),
  }));

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
      await supply.revokeKeys();
    }
  } finally {
    redis.disconnect();
    await admin.close();
  }
}

/** @throws Error if the load was too small to judge the service. */
function assertUsable({ redemptions, refusals, isCut, seconds }: LoadResult): void {
  const refused = Object.entries(refusals).map(([code, count]) => `${count} ${code}`);
  if (redemptions === 0) throw new Error(`No call redeemed a voucher: ${refused.join(", ") || "none was sent"}.`);
  if (isCut && seconds < LOAD_MIN_SECONDS) {
    throw new Error(`All vouchers were redeemed within ${seconds.toFixed(1)} seconds. Give more: --vouchers.`);
  }
}

/** The vouchers and keys of a load. */
interface Supply {
  organizationId: string;
  keys: string[];
  codes: string[];
  /** Revokes the keys. The remaining vouchers expire on their own. */
  revokeKeys(): Promise<void>;
}

/** The name of the sandbox that is made if none is given, and the name of its brand and product. */
const SANDBOX_NAME = "Scale check";
/** Number of keys. With so many, the service reaches its limit before any key reaches its rate limit. */
const KEYS = 16;
/** Maximum validity of the keys and vouchers. Milliseconds. */
const VALID_MS = 3_600_000;

/** Issues vouchers and keys in the given sandbox, or in a sandbox that the first run creates. */
async function openSupply(admin: AdminContext, given: string | null, count: number): Promise<Supply> {
  const ctx = { ...admin, audited: auditedCommand("scale-check", {}) };
  const organizationId =
    given ??
    (await findSandbox(ctx)) ??
    (await createOrganization.run(ctx, "", { name: SANDBOX_NAME, sandbox: true })).id;
  const organization = await findOrganization(ctx.pool, organizationId);
  if (organization === null) throw new Error(`There is no organization ${organizationId}.`);
  if (!organization.sandbox) {
    throw new Error(`${organizationId} is a live organization. This redeems vouchers, so it works on a sandbox only.`);
  }
  const productId = await findProduct(ctx, organizationId);
  const terms = { label: "scale-check", scopes: ["voucher.redeem" as const], allowIps: [], ...NO_CAPS };
  const expiresAt = new Date(Date.now() + VALID_MS);
  const keys = await Promise.all(
    Array.from({ length: KEYS }, () => createKey.run(ctx, organizationId, { ...terms, expiresAt })),
  );
  const codes: string[] = [];
  const input = { productId, count, validUntil: expiresAt, audience: "OpenToAll" as const, windows: {}, codes: null };
  await writeBatch(ctx, input, (vouchers) => void codes.push(...vouchers.map(({ code }) => code)));
  return {
    organizationId,
    keys: keys.map(({ key }) => key),
    codes,
    revokeKeys: async () => void (await Promise.all(keys.map(({ id }) => revokeApiKey.run(ctx, id, {})))),
  };
}

async function findSandbox({ pool }: AuditContext): Promise<string | null> {
  const id = await findNamesake(pool, { parentId: null, name: SANDBOX_NAME });
  return id !== null && (await findOrganization(pool, id))?.sandbox ? id : null;
}

async function findProduct(ctx: AuditContext, organizationId: string): Promise<string> {
  const brandId =
    (await findNamesake(ctx.pool, { parentId: organizationId, name: SANDBOX_NAME })) ??
    (await createBrand.run(ctx, organizationId, { name: SANDBOX_NAME })).id;
  const product = {
    key: "scale-check",
    name: SANDBOX_NAME,
    type: "Service" as const,
    retailPriceUsd: 1,
    priceUsd: 1,
    benefitMonths: 1,
    usageUnitLabel: null,
  };
  return (
    (await findNamesake(ctx.pool, { parentId: brandId, name: SANDBOX_NAME })) ??
    (await createProduct.run(ctx, brandId, product)).id
  );
}

/** The responses to a load. */
interface LoadResult {
  seconds: number;
  redemptions: number;
  /** The number of responses other than 200, by error code. */
  refusals: Record<string, number>;
  /** Null if there was no redemption. */
  latencyMs: { p50: number; p99: number } | null;
  /** Whether the vouchers ran out before the time was over. */
  isCut: boolean;
}

interface Load extends Pick<Supply, "keys" | "codes"> {
  urls: readonly string[];
  callers: number;
  seconds: number;
  signal: AbortSignal;
}

/** How long a caller pauses after a refusal. Milliseconds. */
const REST_MS = 100;

/** Redeems vouchers until the time is over or none is left. Each caller redeems one voucher at a time. */
async function runLoad({ urls, keys, codes, callers, seconds, signal }: Load): Promise<LoadResult> {
  const pools = urls.map((url) => new Pool(url, { connections: Math.ceil(callers / urls.length) }));
  const latencies: number[] = [];
  const refusals: Record<string, number> = {};
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1_000;
  let next = 0;
  const callOnAndOn = async (caller: number) => {
    const pool = pools[caller % pools.length] as Pool;
    const key = keys[caller % keys.length] as string;
    while (performance.now() < endsAt && next < codes.length && !signal.aborted) {
      const code = codes[next++] as string;
      const sentAt = performance.now();
      const refusal = await redeem(pool, key, code).catch(() => "no_answer");
      if (refusal === null) {
        latencies.push(performance.now() - sentAt);
        continue;
      }
      refusals[refusal] = (refusals[refusal] ?? 0) + 1;
      await sleep(REST_MS);
    }
  };
  try {
    await Promise.all(Array.from({ length: callers }, (_, caller) => callOnAndOn(caller)));
  } finally {
    await Promise.all(pools.map((pool) => pool.destroy()));
  }
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] as number;
  return {
    seconds: (performance.now() - startedAt) / 1_000,
    redemptions: latencies.length,
    refusals,
    latencyMs: sorted.length === 0 ? null : { p50: at(0.5), p99: at(0.99) },
    isCut: next >= codes.length,
  };
}

/** Redeems a voucher for a new order. Returns the error code of a refusal, or null. */
async function redeem(pool: Pool, key: string, code: string): Promise<string | null> {
  const { statusCode, body } = await pool.request({
    method: "POST",
    path: "/partner/vouchers/redeem",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: JSON.stringify({ code, externalRef: `scale-check ${code}` }),
  });
  const answer = (await body.json()) as { code?: string };
  return statusCode === 200 ? null : (answer.code ?? String(statusCode));
}

/** How busy each part was during a load. */
interface Measured {
  parts: Part[];
  /** The share of this machine's cores that was used. Null if no process of the service runs on this machine. */
  machine: number | null;
}

/** Time between two readings from Postgres. Milliseconds. */
const LOOK_EVERY_MS = 200;

/** Begins to measure what the processes do not record themselves. Reading the result ends the measurement. */
async function openMeters(pool: pg.Pool, redis: RedisClient) {
  const startedAt = performance.now();
  const redisBefore = await readRedisCpu(redis);
  const machineBefore = readMachine();
  const working: number[] = [];
  const timer = setInterval(() => {
    readWorkingSessions(pool).then(
      (sessions) => sessions.isVisible && working.push(sessions.working),
      () => undefined,
    );
  }, LOOK_EVERY_MS);
  return {
    async read(): Promise<Measured> {
      clearInterval(timer);
      const seconds = (performance.now() - startedAt) / 1_000;
      const machineAfter = readMachine();
      const redisAfter = await readRedisCpu(redis);
      const processes = await readProcesses(pool);
      const [apis, workers] = partsOf(processes) as [Part, Part];
      const busyRedis = Math.max(
        ...redisAfter.map((after, index) => (after - (redisBefore[index] ?? after)) / seconds),
      );
      // Each worker has one batch in progress. So the number of busy Postgres sessions tells how many workers wait for
      // Postgres.
      const mean = working.reduce((sum, one) => sum + one, 0) / Math.max(working.length, 1);
      const busyPostgres = working.length === 0 ? null : Math.min(1, mean / Math.max(workers.processes, 1));
      const isHere = processes.some(({ host, isUp }) => host === hostname() && isUp);
      const idle = (machineAfter.idle - machineBefore.idle) / (machineAfter.all - machineBefore.all);
      return {
        parts: [
          apis,
          workers,
          { name: "Redis", busy: busyRedis, processes: redisAfter.length },
          { name: "Postgres", busy: busyPostgres, processes: 1 },
        ],
        machine: isHere ? 1 - idle : null,
      };
    },
  };
}

/** The CPU time of the command thread on each master. Seconds. */
async function readRedisCpu(redis: RedisClient): Promise<number[]> {
  return Promise.all(
    mastersOf(redis).map(async (master) => {
      const info = await master.info();
      const read = (name: string) =>
        Number(new RegExp(`^used_cpu_${name}_main_thread:(\\S+)`, "m").exec(info)?.[1] ?? 0);
      return read("user") + read("sys");
    }),
  );
}

/** The idle time and the total time of this machine's cores. Milliseconds. */
function readMachine(): { idle: number; all: number } {
  const times = cpus().map((core) => core.times);
  const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { idle: times.reduce((sum, { idle }) => sum + idle, 0), all };
}

/** How busy a process is, according to its own record. */
export type RecordedUse = Pick<ServiceProcess, "role" | "queues" | "isUp" | "busy">;

/** A part of the service, and the share of the time in which it was busy during a load. */
export interface Part {
  name: "API" | "worker" | "Redis" | "Postgres";
  /** How busy the part's busiest process was: a share of the time. Null if unknown. */
  busy: number | null;
  processes: number;
}

/** If a part is busy for at least this share of the time, calls wait for it, so it limits the throughput. */
const LIMIT_MIN = 0.7;

/** The busiest part. Null if every part has spare time. */
export function findLimit(parts: readonly Part[]): Part["name"] | null {
  const [busiest] = parts
    .filter(({ busy }) => busy !== null && busy >= LIMIT_MIN)
    .toSorted((a, b) => (b.busy ?? 0) - (a.busy ?? 0));
  return busiest?.name ?? null;
}

/** The parts whose processes record how busy they are: the APIs, and the workers that redeem. */
export function partsOf(processes: readonly RecordedUse[]): Part[] {
  const up = processes.filter(({ isUp }) => isUp);
  const kinds = [
    { name: "API", own: up.filter(({ role }) => role === "api") },
    { name: "worker", own: up.filter(({ queues }) => queues.includes("redeem")) },
  ] as const;
  return kinds.map(({ name, own }) => {
    return { name, busy: own.length === 0 ? null : Math.max(...own.map(({ busy }) => busy)), processes: own.length };
  });
}

/** The results of a load, and how busy each part was meanwhile. */
interface Scale extends LoadResult, Measured {
  organization: string;
  callers: number;
}

/** If at least this share of a machine's cores is used, none is free. */
const MACHINE_FULL = 0.95;

const ADVICE = {
  API: "The API is the limit now. Add an API, and send it a share of the calls.",
  worker: "The workers are the limit now. Add a worker.",
  Redis: "Redis is the limit now. Use a Redis Cluster: docs/redis-cluster.md.",
  Postgres:
    "Postgres is the limit now. Add a worker, which commits one more batch at a time; if the rate stays the same, " +
    "Postgres needs a faster disk or more cores.",
};

/** The report: text for a person or, if `json` is set, JSON for a program. */
export function showScale(scale: Scale, json: boolean): string {
  const { redemptions, isCut: _, seconds, refusals, latencyMs, parts, machine } = scale;
  const limit = refusals.rate_limited ? "rate limit" : findLimit(parts);
  const perSecond = Math.round(redemptions / seconds);
  if (json) {
    const shown = parts.map(({ name, busy, processes }) => ({ part: name, busy, processes }));
    const { organization, callers } = scale;
    const load = { organization, callers, seconds, redemptionsPerSecond: perSecond, latencyMs, refusals };
    return JSON.stringify({ ...load, parts: shown, machine, limit });
  }
  const times = `half of the answers within ${latencyMs?.p50.toFixed(0)} ms, 99 of 100 \
within ${latencyMs?.p99.toFixed(0)} ms`;
  const refused = Object.entries(refusals).map(([code, count]) => `${count} ${code}`);
  return [
    `${perSecond} redemptions a second; ${times}.`,
    `Refused: ${refused.join(", ") || "none"}.\n`,
    showRow("Part", "Works", "Processes"),
    ...parts.map(({ name, busy, processes }) => showRow(name, showShare(busy), String(processes))),
    `\n${describeLimit(limit, machine !== null && machine >= MACHINE_FULL)}`,
  ].join("\n");
}

const showRow = (part: string, works: string, processes: string) =>
  `${part.padEnd(10)}${works.padStart(9)}${processes.padStart(12)}`;

const showShare = (share: number | null) => (share === null ? "unknown" : `${Math.round(share * 100)} %`);

function describeLimit(limit: ReturnType<typeof findLimit> | "rate limit", isFull: boolean): string {
  if (limit === "rate limit") return "RATE_LIMIT_RPS is the limit now: keys were refused for calling too often.";
  const full =
    "All cores of this machine are in use, by this load as well: more processes help only on other machines.";
  if (limit === null) return isFull ? full : "No part is at its limit. Give more callers: --callers.";
  return isFull ? `${ADVICE[limit]}\n${full}` : ADVICE[limit];
}

if (import.meta.main) {
  const given = readOptions();
  try {
    await check(given);
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = error instanceof ConfigError ? 78 : 1;
  }
}
