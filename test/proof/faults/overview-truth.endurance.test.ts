import { spawnSync } from "node:child_process";
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import type pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { markBrokenChains } from "../../../src/core/chain/db/broken-chains.ts";
import { listShards } from "../../../src/platform/queues/shards.ts";
import { basic, OPS_TOKEN } from "../../support/browse.ts";
import { startPartnerServer } from "../../support/partner-server.ts";
import { until } from "../../support/until.ts";
import { startReceiver, type WebhookReceiver } from "../../support/webhook-receiver.ts";
import { untilReady } from "./checker.ts";
import type { ApiProcess, Cluster } from "./cluster.ts";
import { type FaultPostgres, withClient } from "./fault-postgres.ts";
import type { ServiceProcess } from "./service-process.ts";
import { hasFakeTime } from "./stepped-clock.ts";
import { useFaultCluster } from "./use-fault-cluster.ts";

// Tests what the overview of two API and three worker processes shows first for each fault, and how soon.

/** How long the overview must stay free of a fault that is not expected. Each process checks twice. Milliseconds. */
const STAYS_MS = 12_000;
const [SHARDS, HAS_CLOCK] = [2, hasFakeTime()];
/** While this file exists, the event loop of the second API process is blocked. */
const BLOCK_WHILE = join(tmpdir(), `voucher-block-${process.pid}`);
const BLOCKING = { NODE_OPTIONS: `--import=${new URL("./block-event-loop.ts", import.meta.url)}`, BLOCK_WHILE };

/** Whether this process may give Redis a small disk. */
const MAY_MOUNT = mayMount();

const alertReceiver = await startPartnerServer({ answer: answerAlert });

const own = useFaultCluster(
  {
    redeemWaitMs: 3_000,
    env: {
      OPS_TOKEN,
      // At this level, a worker logs that it has started.
      LOG_LEVEL: "info",
      QUEUE_SHARDS: String(SHARDS),
      WEBHOOK_SECRET: "test-webhook-secret-of-32-characters",
      WEBHOOK_ALLOW_PRIVATE: "true",
      ALERT_URL: alertReceiver.url,
    },
    apis: [{}, BLOCKING],
    apiWire: true,
    // The third worker serves only the first shard.
    workers: [{}, {}, { WORKER_SHARDS: "0" }],
    ...(MAY_MOUNT && { redisDiskMb: 48 }),
  },
  HAS_CLOCK,
);

let cluster: Cluster;
let postgres: FaultPostgres;
let api: ApiProcess;
let otherApi: ApiProcess;
let workers: [ServiceProcess, ServiceProcess, ServiceProcess];
let redis: Redis;
let receiver: WebhookReceiver;
let webhookStatus = 204;

beforeAll(async () => {
  ({ cluster, postgres, api, otherApi } = own);
  workers = cluster.workers as typeof workers;
  redis = new Redis(cluster.redis.url);
  redis.on("error", () => undefined);
  receiver = await startReceiver(() => webhookStatus);
});

afterAll(async () => {
  redis.disconnect();
  rmSync(BLOCK_WHILE, { force: true });
  await Promise.all([receiver.close(), alertReceiver.close()]);
});

it("the overview shows no fault in a quiet period or under load", async () => {
  await untilCalm();
  const shown = new Set<string>();
  const readFor = async (forMs: number) => {
    for (const passedMs = stopwatch(); passedMs() < forMs; )
      for (const one of await readAttention()) shown.add(nameShown(one));
  };
  await readFor(STAYS_MS);
  const visitors = startVisitors(BUSY_ORDERS_AT_ONCE);
  await readFor(STAYS_MS);
  await visitors.stop();
  process.stdout.write(`calm in a busy stretch with ${visitors.answered} redemptions\n`);
  expect([...shown]).toEqual([]);
  expect(visitors.answered).toBeGreaterThan(0);
});

it("the overview shows no red fault while processes are replaced one at a time", async () => {
  await untilCalm();
  const visitors = startVisitors(ORDERS_AT_ONCE);
  const reds = watchReds(api, otherApi);
  for (const process of [...workers, otherApi.process, api.process]) {
    await process.terminate();
    process.start();
    await untilReady(cluster);
  }
  await new Promise((resolve) => setTimeout(resolve, STAYS_MS));
  await visitors.stop();
  expect(await reds.stop()).toEqual([]);
});

it("the overview shows no red fault in a failover of three seconds", async () => {
  await untilCalm();
  const reds = watchReds(api, otherApi);
  await postgres.freeze();
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  postgres.thaw();
  await new Promise((resolve) => setTimeout(resolve, STAYS_MS));
  expect(await reds.stop()).toEqual([]);
});

/** Maximum time until the overview shows a fault. Milliseconds. */
const KNOWN_MS = 20_000;

/** The number of concurrent callers, so low that any machine can serve them. */
const ORDERS_AT_ONCE = 4;
const BUSY_ORDERS_AT_ONCE = 16;

interface Case {
  fault: string;
  traffic?: boolean;
  inflict(): unknown;
  mend(): unknown;
  /**
   * The severity and runbook entry that the overview must show first. Null if it must show nothing red, because the
   * service continues.
   */
  first: string | null;
  causes?: readonly string[];
  /** Texts that the overview must show at the same time, in any entry. */
  says?: readonly RegExp[];
  /** The API process whose overview the test reads. By default the first. */
  at?: () => ApiProcess;
  skip?: boolean;
}

const NOTHING = "red VouchersNothingRedeemed";
const HOUR_MS = 3_600_000;

/** Faults that stop all redeems, with the expected text of the overview. */
const STOPS: readonly Pick<Case, "fault" | "inflict" | "mend" | "causes" | "says" | "skip">[] = [
  {
    fault: "all workers are killed",
    inflict: () => Promise.all(workers.map((worker) => worker.kill())),
    mend: startProcesses,
    says: [/worker/],
  },
  {
    fault: "all workers are stopped",
    inflict: () => freeze(...workers),
    mend: () => thaw(...workers),
    says: [/worker/],
  },
  {
    fault: "all workers wait for a lock",
    inflict: () => lock.take(),
    mend: () => lock.release(),
    says: [/Workers do not finish|workers do not finish|no worker takes them/],
  },
  {
    fault: "the redeem queue is paused",
    inflict: () => onRedeemQueues((queue) => queue.pause()),
    mend: () => onRedeemQueues((queue) => queue.resume()),
    causes: ["VouchersQueuePaused"],
    says: [/paused/],
  },
  {
    fault: "Postgres is away",
    inflict: () => postgres.freeze(),
    mend: () => postgres.thaw(),
    says: [/Postgres/],
  },
  {
    fault: "Postgres is read-only",
    inflict: () => setReadOnly("on"),
    mend: () => setReadOnly("off"),
    says: [/read.only/],
  },
  {
    fault: "the disk of Postgres is full",
    inflict: () => refuseWrites("53100", "could not extend file: No space left on device"),
    mend: () => cluster.db.query("DROP FUNCTION refuse_writes CASCADE"),
    says: [/No space left on device/],
  },
  {
    fault: "the standby is away",
    inflict: () => postgres.stopStandby(),
    mend: () => postgres.start(),
    says: [/standby/],
  },
  {
    fault: "Redis is away",
    inflict: () => cluster.redis.freeze(),
    mend: () => cluster.redis.thaw(),
    says: [/Redis/],
  },
  {
    fault: "Redis is full",
    inflict: () => setRedis("maxmemory", "1"),
    mend: () => setRedis("maxmemory", "0"),
    says: [/OOM/],
  },
  {
    fault: "Redis is a replica, and read-only",
    inflict: () => redis.replicaof("127.0.0.1", 1),
    mend: () => redis.replicaof("NO", "ONE"),
    says: [/READONLY|replica/],
  },
  {
    fault: "Redis lacks the replicas that it asks for",
    inflict: () => setRedis("min-replicas-to-write", "1"),
    mend: () => setRedis("min-replicas-to-write", "0"),
    says: [/NOREPLICAS/],
  },
  {
    fault: "the disk of Redis is full",
    inflict: () => cluster.redis.fillDisk(),
    mend: () => cluster.redis.freeDisk(),
    says: [/MISCONF|No space left/],
    skip: !MAY_MOUNT,
  },
];

const CASES: readonly Case[] = [
  ...STOPS.flatMap((stop) => [
    { ...stop, first: NOTHING },
    { ...stop, fault: `${stop.fault} under load`, traffic: true, first: NOTHING },
  ]),
  // One of the two API processes loses Redis.
  ...[() => api, () => otherApi].map((at, index) => ({
    fault: index === 0 ? "only the asked API process has Redis" : "only another API process has Redis",
    at,
    inflict: () => cluster.apiWire.cut(),
    mend: () => cluster.apiWire.mend(),
    first: "red VouchersServerAway",
  })),
  {
    fault: "a webhook target fails",
    inflict: failWebhooks,
    mend: mendWebhooks,
    first: "amber VouchersWebhooksFail",
  },
  {
    fault: "a shard has no worker",
    inflict: () => Promise.all([workers[0].kill(), workers[1].kill()]),
    mend: startProcesses,
    first: "red VouchersShardAway",
  },
  { fault: "Redis is emptied", inflict: () => redis.flushall(), mend: () => undefined, first: null },
  {
    fault: "a chain is broken",
    inflict: () => setPayload((payload) => `${payload} `),
    mend: () => setPayload((payload) => payload.slice(0, -1)),
    first: "red VouchersChainBroken",
  },
  {
    fault: "the database's clock jumps ahead",
    inflict: () => postgres.clock.set(HOUR_MS),
    mend: () => postgres.clock.set(0),
    first: "red VouchersClockAhead",
    skip: !HAS_CLOCK,
  },
  {
    fault: "the event loop of an API process is blocked under load",
    traffic: true,
    inflict: () => {
      writeFileSync(BLOCK_WHILE, "");
      otherApi.process.block();
    },
    mend: () => rmSync(BLOCK_WHILE),
    first: null,
  },
  {
    fault: "an API process and a worker are stopped under load",
    traffic: true,
    inflict: () => freeze(otherApi.process, workers[2]),
    mend: () => thaw(otherApi.process, workers[2]),
    first: null,
  },
];

it.each(
  CASES.filter(({ skip }) => skip !== true),
)("the overview shows within 20 s that $fault, before other faults, and no fault after the repair", async (one) => {
  const { fault, traffic = false, first, causes = [], at = () => api } = one;
  // Waits for both API processes. While Postgres was away, each process decided by its own checks.
  await Promise.all([untilCalm(), untilCalm(() => readAttention(otherApi))]);
  const visitors = traffic ? startVisitors(ORDERS_AT_ONCE) : null;
  await until(() => visitors === null || visitors.answered > 10);
  const unexpected = new Set<string>();
  const read = async () => {
    const shown = await readAttention(at());
    for (const { severity, runbook, what } of shown) {
      const isExpected = severity !== "red" || first === `red ${runbook}` || causes.includes(runbook);
      if (!isExpected) unexpected.add(`red ${runbook}: ${what}`);
    }
    return shown;
  };
  let told: readonly string[] = [];
  let [toldAt, mendedAt] = [stopwatch(), stopwatch()];
  let [toldMs, calmMs] = [0, 0];
  try {
    toldAt = stopwatch();
    await one.inflict();
    told = (await readUntilTold(one, read)).map(nameShown);
    toldMs = toldAt();
  } finally {
    await one.mend();
    mendedAt = stopwatch();
    await visitors?.stop();
    // Removes failed jobs, which the overview would otherwise show. A job may fail when Postgres ends the session of a
    // frozen worker.
    if (traffic) await onRedeemQueues(async (queue) => void (await queue.clean(0, 1_000, "failed")));
  }
  const lingering = await untilCalm(read);
  calmMs = mendedAt();
  const times = `${inSeconds(toldMs)}, calm after ${inSeconds(calmMs)} (last: ${lingering})`;
  process.stdout.write(`${times}: ${fault}: ${told.join("; ")}\n`);
  const shown = told.find((entry) => first !== null || entry.startsWith("red ")) ?? null;
  expect({ fault, told: shown }).toEqual({ fault, told: first && expect.stringMatching(`^${first}:`) });
  expect({ fault, unexpected: [...unexpected] }).toEqual({ fault, unexpected: [] });
});

it("ALERT_URL receives messages about red faults", () => {
  const whats = alertReceiver.received.map(({ body }) => JSON.parse(body).what);
  for (const what of [/^Nothing is redeemed/, /does not verify$/])
    expect(whats).toContainEqual(expect.stringMatching(what));
});

let isReceiverAway = false;

function answerAlert(response: ServerResponse) {
  if (isReceiverAway) response.destroy();
  else response.writeHead(204).end();
}

it("the overview names an unreachable ALERT_URL, which gets the messages within minutes of its return", async () => {
  await untilCalm();
  const earlier = alertReceiver.received.length;
  const untilTold = (isWanted: (endedAt: string | null) => boolean) =>
    until(() => {
      const messages = alertReceiver.received.slice(earlier).map(({ body }) => JSON.parse(body));
      return messages.some(({ what, endedAt }) => what.startsWith("The queue redeem is paused") && isWanted(endedAt));
    }, TOLD_MS);
  isReceiverAway = true;
  await onRedeemQueues((queue) => queue.pause());
  try {
    await until(async () => (await readAttention()).some(({ runbook }) => runbook === "AlertsFail"), 2 * KNOWN_MS);
    alertReceiver.received.length = earlier;
    isReceiverAway = false;
    await untilTold((endedAt) => endedAt === null);
  } finally {
    isReceiverAway = false;
    await onRedeemQueues((queue) => queue.resume());
  }
  await untilCalm();
  await untilTold((endedAt) => endedAt !== null);
});

const stopwatch =
  (startedAt = performance.now()) =>
  () =>
    performance.now() - startedAt;
const inSeconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
const nameShown = ({ severity, runbook, what, subject }: Shown) => `${severity} ${runbook}: ${what} (${subject})`;

/**
 * Reads the overview until its first fault and its texts are the expected ones, or until the time is over. If no fault
 * is expected, reads for `STAYS_MS`.
 */
async function readUntilTold({ first, says = [] }: Case, read: () => Promise<Shown[]>): Promise<Shown[]> {
  const passedMs = stopwatch();
  for (;;) {
    const shown = await read();
    const [top] = shown;
    const isTold =
      `${top?.severity} ${top?.runbook}` === first &&
      says.every((words) => shown.some((one) => words.test(nameShown(one))));
    const isOver = passedMs() > (first === null ? STAYS_MS : KNOWN_MS);
    if (isTold || isOver || (first === null && top?.severity === "red")) return shown;
  }
}

/** Waits until the overview shows nothing. Returns what it showed last. */
async function untilCalm(read = () => readAttention()): Promise<string> {
  let last = "nothing";
  await until(async () => {
    const shown = await read();
    last = shown.length === 0 ? last : shown.map(({ runbook }) => runbook).join(" ");
    return shown.length === 0;
  }, CALM_MS).catch(() => expect.fail(`the overview still shows ${last}`));
  return last;
}

async function readAttention({ url } = api): Promise<Shown[]> {
  await new Promise((resolve) => setTimeout(resolve, READ_EVERY_MS));
  const response = await fetch(`${url}/ops/overview.json`, { headers: basic(OPS_TOKEN) });
  const body = (await response.json()) as { attention: Shown[]; error?: string };
  expect({ status: response.status, error: body.error }).toEqual({ status: 200, error: undefined });
  return body.attention;
}

/** Redeems through both API processes, with this many callers. `stop` resolves once all have their answers. */
function startVisitors(atOnce: number) {
  let isOver = false;
  const visit = async (visitor: number) => {
    for (let turn = visitor; !isOver; turn++) {
      const { status } = await own.redeem(own.newOrder(), turn % 2 === 0 ? api : otherApi);
      if (status === 200) visitors.answered += 1;
      await new Promise((resolve) => setTimeout(resolve, ORDER_EVERY_MS));
    }
  };
  const all = Array.from({ length: atOnce }, (_, visitor) => visit(visitor));
  const visitors = {
    answered: 0,
    async stop(): Promise<void> {
      isOver = true;
      await Promise.all(all);
    },
  };
  return visitors;
}

function freeze(...processes: readonly ServiceProcess[]): void {
  for (const process of processes) process.freeze();
}

function thaw(...processes: readonly ServiceProcess[]): void {
  for (const process of processes) process.thaw();
}

async function startProcesses(): Promise<void> {
  for (const worker of workers) worker.start();
}

async function onRedeemQueues(act: (queue: Queue) => Promise<void>): Promise<void> {
  const { rows } = await cluster.db.query("SELECT id FROM deployment");
  const connection = { host: "127.0.0.1", port: Number(new URL(cluster.redis.url).port) };
  for (const { prefix } of listShards(rows[0].id, SHARDS)) {
    const queue = new Queue("redeem", { prefix, connection });
    await act(queue);
    await queue.close();
  }
}

/** Makes the service's sessions read-only, like on a standby. */
async function setReadOnly(value: "on" | "off"): Promise<void> {
  await cluster.db.query(`ALTER ROLE pva_api IN DATABASE postgres SET default_transaction_read_only = ${value}`);
  await cluster.db.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'pva_api'");
}

/** Makes Postgres refuse new marks, redemptions and records of processes, as on a full disk. */
const refuseWrites = (errcode: string, words: string) =>
  cluster.db.query(`
    CREATE FUNCTION refuse_writes() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION '${words}' USING ERRCODE = '${errcode}'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON database_marks EXECUTE FUNCTION refuse_writes();
    CREATE TRIGGER refuse BEFORE INSERT ON redemptions EXECUTE FUNCTION refuse_writes();
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON processes EXECUTE FUNCTION refuse_writes()`);

/** Locks the table `redemptions`, as a migration or an administrator may do. */
const lock = {
  client: null as pg.PoolClient | null,
  async take(): Promise<void> {
    lock.client = await cluster.db.connect();
    await lock.client.query("BEGIN; LOCK TABLE redemptions IN SHARE ROW EXCLUSIVE MODE");
  },
  async release(): Promise<void> {
    await lock.client?.query("ROLLBACK");
    lock.client?.release();
    lock.client = null;
  },
};

/** Collects the red faults of these API processes until `stop`. Skips a process that does not respond. */
function watchReds(...apis: readonly ApiProcess[]) {
  const reds = new Set<string>();
  let isOver = false;
  const watch = async (one: ApiProcess) => {
    while (!isOver)
      for (const shown of await readAttention(one).catch(() => []))
        if (shown.severity === "red") reds.add(nameShown(shown));
  };
  const watching = Promise.all(apis.map(watch));
  return {
    async stop(): Promise<string[]> {
      isOver = true;
      await watching;
      return [...reds];
    },
  };
}

async function failWebhooks(): Promise<void> {
  webhookStatus = 500;
  await receiver.addEndpoint(cluster.db, own.key.organizationId);
  await own.redeemAll(own.newOrders(4), api);
}

async function mendWebhooks(): Promise<void> {
  webhookStatus = 204;
  await own.redeemAll(own.newOrders(1), api);
}

let broken = "";

/** Changes an event's data and hash without triggers. First marks the chain as broken, later removes the mark. */
function setPayload(change: (payload: string) => string): Promise<void> {
  return withClient(postgres.url, async (superuser) => {
    if (broken === "") {
      const order = own.newOrder();
      await own.redeem(order, api);
      broken = order.id;
      await superuser.query(markBrokenChains([broken]));
    } else await superuser.query("DELETE FROM broken_chains");
    const first = "voucher_id = $1 AND sequence = 1";
    const { rows } = await superuser.query(`SELECT payload FROM voucher_events WHERE ${first}`, [broken]);
    await superuser.query("SET session_replication_role = replica");
    await superuser.query(
      `UPDATE voucher_events SET payload = $2, record_hash = sha256(convert_to($2, 'UTF8')) WHERE ${first}`,
      [broken, change(rows[0].payload)],
    );
  });
}

function mayMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "voucher-mount-"));
  const mounted =
    spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], { stdio: "ignore" }).status === 0;
  if (mounted) spawnSync("umount", [folder]);
  rmdirSync(folder);
  return mounted;
}

interface Shown {
  severity: string;
  what: string;
  subject: string;
  runbook: string;
}

function setRedis(name: string, value: string) {
  return redis.config("SET", name, value);
}

/**
 * Maximum time until an alert arrives. The service repeats alerts once a minute, and reports a fault's end after a
 * minute. Milliseconds.
 */
const TOLD_MS = 180_000;

/** Maximum time after a repair until the overview shows nothing. Milliseconds. */
const CALM_MS = 60_000;

const READ_EVERY_MS = 500;

/** A caller's pause after an answer. Milliseconds. */
const ORDER_EVERY_MS = 100;
