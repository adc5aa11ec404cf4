import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { inTransaction } from "../../src/platform/db/transaction.ts";
import { openLogger } from "../../src/platform/logger.ts";
import { openWebhookSender } from "../../src/platform/outgoing/send-webhook.ts";
import { openFailFast, untilReady } from "../../src/platform/redis/connections.ts";
import { AlertTeller } from "../../src/watch/alerts/alert-teller.ts";
import type { FoundFault } from "../../src/watch/alerts.ts";
import { replaceAlerts } from "../../src/watch/db/alerts.ts";
import { startPartnerServer } from "../support/partner-server.ts";
import { itOnOneRedis, openServicePool } from "../support/servers.ts";
import { startApiUnready } from "../support/service.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { useDatabase } from "../support/use-service.ts";

const { servers, db } = useDatabase();
const SECRET = `whsec_${Buffer.from("a secret of 32 bytes for alerts.").toString("base64")}`;
const FAULT = {
  fault: "f",
  severity: "red",
  what: "Nothing is redeemed",
  subject: "Redis",
  since: "2026-11-26T20:59:00.000Z",
};
const RED = [FAULT];
const CALM: FoundFault[] = [];

/** The clock of all processes. The receiver's library accepts signatures of the last five minutes. */
let nowMs = 0;
beforeEach(() => {
  nowMs = Date.now();
});

afterEach(async () => {
  await db.query(`UPDATE alerts SET version = 0, state = '{"alerts": []}'`);
  await servers.redis.flushdb();
});

it("one of several API processes sends the beginning of a red fault and its end, signed, as JSON", async () => {
  const { receiver, startTwo, told } = await open();
  const tellers = await startTwo();
  for (let looks = 0; looks < 3; looks++) await tellAll(tellers, RED);
  expect(told()).toEqual(["begin"]);
  await endFault(tellers);
  await endFault(tellers);
  expect(told()).toEqual(["begin", "end"]);
  for (const { headers, body } of receiver.received) {
    expect(() => new Webhook(SECRET).verify(body, headers as Record<string, string>)).not.toThrow();
    expect(headers["content-type"]).toBe("application/json");
    const { text, ...rest } = JSON.parse(body);
    const isEnd = rest.endedAt !== null;
    expect(text).toMatch(
      isEnd ? /^ENDED: Nothing is redeemed \(Redis\), from .* to / : /^RED: Nothing is redeemed \(Redis\)/,
    );
    const { fault: _, ...fault } = FAULT;
    expect(rest).toEqual({ ...fault, endedAt: isEnd ? expect.any(String) : null, url: "https://vouchers.test/ops" });
  }
});

it("API processes that replace all others send the ends of faults begun before them, and nothing twice", async () => {
  const { startTwo, told } = await open();
  await tellAll(await startTwo(), RED);
  await servers.redis.flushdb();
  const tellers = await startTwo();
  await tellAll(tellers, RED);
  expect(told()).toEqual(["begin"]);
  await endFault(tellers);
  expect(told()).toEqual(["begin", "end"]);
});

itOnOneRedis(
  "while Postgres is away, Redis decides which process sends; afterwards nothing is sent twice",
  async () => {
    const { startTwo, told, toPostgres } = await open();
    const tellers = await startTwo();
    toPostgres.cut();
    await tellAll(tellers, RED);
    expect(told()).toEqual(["begin"]);
    toPostgres.mend();
    await tellAll(tellers, RED);
    await servers.redis.flushdb();
    // Postgres has learned it.
    const next = await startTwo();
    await tellAll(next, RED);
    expect(told()).toEqual(["begin"]);
    await endFault(next);
    expect(told()).toEqual(["begin", "end"]);
  },
);

itOnOneRedis("a process that was told by Postgres goes on with Redis when Postgres hangs", async () => {
  const { startTwo, told, toPostgres } = await open();
  const tellers = await startTwo();
  await tellAll(tellers, RED);
  toPostgres.jam();
  await tellAll(tellers, RED);
  await endFault(tellers);
  toPostgres.mend();
  expect(told()).toEqual(["begin", "end"]);
});

itOnOneRedis("while Postgres and Redis are away, each process sends for itself, once", async () => {
  const { startTwo, told, toPostgres, toRedis } = await open();
  const tellers = await startTwo();
  toPostgres.cut();
  toRedis.cut();
  for (let looks = 0; looks < 3; looks++) await tellAll(tellers, RED);
  expect(told()).toEqual(["begin", "begin"]);
  toPostgres.mend();
  toRedis.mend();
  await tellAll(tellers, RED);
  expect(told()).toEqual(["begin", "begin"]);
  await endFault(tellers);
  expect(told()).toEqual(["begin", "begin", "end"]);
});

/** A deployment of which a process learns once it has reached the database. */
function makeUnknown() {
  let isKnown = false;
  return {
    get id() {
      if (!isKnown) throw new Error("The database has not been reached yet.");
      return servers.deploymentId;
    },
    learn: () => {
      isKnown = true;
    },
  };
}

itOnOneRedis(
  "a process that starts while Postgres is away tells what it finds, and its end once Postgres is back",
  async () => {
    const { start, told, toPostgres } = await open();
    const other = { ...FAULT, fault: "other" };
    await (await start()).tell([other]);
    toPostgres.cut();
    const deployment = makeUnknown();
    const restarted = await start(deployment);
    for (let looks = 0; looks < 3; looks++) await restarted.tell([FAULT]);
    expect(told()).toEqual(["begin", "begin"]);
    toPostgres.mend();
    deployment.learn();
    const both = [FAULT, other];
    for (let looks = 0; looks < 2; looks++) await restarted.tell(both);
    const { rows } = await db.query("SELECT state FROM alerts");
    expect(rows[0].state.alerts).toMatchObject([{ fault: "other" }, { fault: "f", sent: "begin" }]);
    await endFault([restarted]);
    expect(told()).toEqual(["begin", "begin", "end", "end"]);
  },
);

itOnOneRedis(
  "processes that start while Postgres is away tell an end that they know once, and go on with an alert that lasts",
  async () => {
    const { start, told, toPostgres } = await open();
    await (await start()).tell(RED);
    toPostgres.cut();
    const deployment = makeUnknown();
    const restarted = [await start(deployment), await start(deployment)];
    await tellAll(restarted, RED);
    expect(told()).toEqual(["begin", "begin", "begin"]);
    toPostgres.mend();
    deployment.learn();
    await tellAll(restarted, RED);
    await endFault(restarted);
    expect(told()).toEqual(["begin", "begin", "begin", "end"]);
  },
);

it("an API process that starts while Postgres is away sends to ALERT_URL that nothing is redeemed", async () => {
  const receiver = await startPartnerServer({ answer: (response) => response.writeHead(204).end() });
  onTestFinished(() => receiver.close());
  const toPostgres = await openTcpProxy(servers.databaseUrl);
  toPostgres.cut();
  onTestFinished(() => toPostgres.close());
  const env = { DATABASE_URL: toPostgres.url, ALERT_URL: receiver.url, WEBHOOK_ALLOW_PRIVATE: "true" };
  const api = await startApiUnready(servers, env);
  onTestFinished(() => api.close());
  const sentence = /^RED: Nothing is redeemed: .*Postgres/;
  await until(() => receiver.received.some(({ body }) => sentence.test(JSON.parse(body).text)), 60_000);
});

it("the state of alerts is committed without a standby, because the alert may be about its absence", async () => {
  const pool = openServicePool(servers.databaseUrl);
  const setting = await inTransaction(pool, async (tx) => {
    await replaceAlerts(tx, { before: 0, version: 1, state: "{}" });
    return (await tx.query("SHOW synchronous_commit")).rows[0].synchronous_commit;
  });
  await pool.end();
  expect(setting).toBe("local");
});

it("a receiver that refuses is asked again at growing intervals, and gets each message once it accepts", async () => {
  let status = 500;
  const { receiver, startTwo, told } = await open({ status: () => status });
  const tellers = await startTwo();
  for (const passedMs of [0, 5_000, 31_000, 31_000, 31_000]) {
    nowMs += passedMs;
    await tellAll(tellers, RED);
  }
  expect(receiver.received).toHaveLength(3);
  const { rows } = await db.query("SELECT state FROM alerts");
  expect(rows[0].state.alerts).toMatchObject([{ sent: "nothing", attempts: 3, failingSince: expect.any(String) }]);
  status = 200;
  nowMs += 600_000;
  await tellAll(tellers, RED);
  expect(told()).toHaveLength(4);
  expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  expect((await db.query("SELECT state FROM alerts")).rows[0].state.alerts).toMatchObject([
    { sent: "begin", failingSince: null },
  ]);
});

it("an alert goes to no private address unless WEBHOOK_ALLOW_PRIVATE holds", async () => {
  const { receiver, start } = await open({ allowPrivate: false });
  await (await start()).tell(RED);
  expect(receiver.received).toEqual([]);
});

/** The tellers of API processes, whose ways to the servers the test interrupts, and a receiver. */
async function open({ status = (): number => 204, allowPrivate = true } = {}) {
  const receiver = await startPartnerServer({ answer: (response) => response.writeHead(status()).end("ok") });
  onTestFinished(() => receiver.close());
  const [toPostgres, toRedis] = [await openTcpProxy(servers.databaseUrl), await openWayToRedis()];
  onTestFinished(async () => void (await Promise.all([toPostgres.close(), toRedis.close()])));
  const log = openLogger("silent", "test");
  const webhookSender = openWebhookSender({ allowPrivate });
  onTestFinished(() => webhookSender.close());
  /** @param deployment throws where the process does not know the deployment yet. */
  const start = async (deployment: { readonly id: string } = { id: servers.deploymentId }) => {
    const pool = openServicePool(toPostgres.url, 2);
    const redis = openFailFast(toRedis.url, "test", log);
    await untilReady(redis, 10_000);
    onTestFinished(async () => {
      redis.disconnect();
      await pool.end();
    });
    return new AlertTeller({
      pool,
      redis,
      webhookSender,
      log,
      deployment: {
        get id() {
          return deployment.id;
        },
        clock: { steadyNow: () => new Date(nowMs) },
      },
      config: { baseUrl: "https://vouchers.test", alerts: { url: receiver.url, secret: SECRET } },
    });
  };
  /** The messages so far, as `begin` and `end`. */
  const told = () => receiver.received.map(({ body }) => (JSON.parse(body).endedAt === null ? "begin" : "end"));
  return { receiver, toPostgres, toRedis, start, startTwo: () => Promise.all([start(), start()]), told };
}

/** A proxy, or on a cluster the addresses of its nodes: tests that interrupt the way run on one Redis only. */
async function openWayToRedis(): ReturnType<typeof openTcpProxy> {
  const url = servers.redisUrl;
  const untouched = { url, close: async () => undefined } as Awaited<ReturnType<typeof openTcpProxy>>;
  return url.includes(",") ? untouched : openTcpProxy(url);
}

const tellAll = (tellers: readonly AlertTeller[], red: readonly FoundFault[]) =>
  Promise.all(tellers.map((teller) => teller.tell(red)));

/** All see that the fault is gone, and again when that has lasted. */
async function endFault(tellers: readonly AlertTeller[]): Promise<void> {
  await tellAll(tellers, CALM);
  nowMs += 61_000;
  await tellAll(tellers, CALM);
}
