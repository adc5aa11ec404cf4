import { Webhook } from "standardwebhooks";
import { afterEach, expect, it, onTestFinished } from "vitest";
import { inTransaction } from "../../src/platform/db/transaction.ts";
import { openLogger } from "../../src/platform/logger.ts";
import { openWebhookSender } from "../../src/platform/outgoing/send-webhook.ts";
import { openFailFast, untilReady } from "../../src/platform/redis/connections.ts";
import { alertBody } from "../../src/watch/alerts.ts";
import { beginFaults, selectFaults } from "../../src/watch/db/faults.ts";
import { allFaults } from "../../src/watch/faults.ts";
import { type Attention, FaultKeeper, findExplanation } from "../../src/watch/keep-faults.ts";
import { startPartnerServer } from "../support/partner-server.ts";
import { itOnOneRedis, openServicePool } from "../support/servers.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { useDatabase } from "../support/use-service.ts";

const { servers, db } = useDatabase();
const SECRET = `whsec_${Buffer.from("a secret of 32 bytes for alerts.").toString("base64")}`;
const FAULT: Attention = {
  runbook: "VouchersNothingRedeemed",
  severity: "red",
  what: "Nothing is redeemed",
  subject: "Redis",
  since: new Date("2026-11-26T20:59:00.000Z"),
  page: null,
};
const AMBER: Attention = { ...FAULT, runbook: "VouchersJobsFail", severity: "amber", page: ["queues"] };

afterEach(async () => {
  await db.query("DELETE FROM faults");
  await servers.redis.flushdb();
});

it("only one of several API processes sends the start and the end of a red fault, as signed JSON", async () => {
  const { receiver, startTwo, told } = await open();
  const keepers = await startTwo();
  for (let looks = 0; looks < 3; looks++) await lookAll(keepers, [FAULT, AMBER]);
  expect(told()).toEqual(["begin"]);
  await endFault(keepers);
  await lookAll(keepers, []);
  expect(told()).toEqual(["begin", "end"]);
  expect((await selectFaults(db)).map(({ kind }) => kind)).toEqual([]);
  for (const { headers, body } of receiver.received) {
    expect(() => new Webhook(SECRET).verify(body, headers as Record<string, string>)).not.toThrow();
    expect(headers["content-type"]).toBe("application/json");
    const { text, ...rest } = JSON.parse(body);
    const isEnd = rest.endedAt !== null;
    expect(text).toMatch(
      isEnd ? /^ENDED: Nothing is redeemed \(Redis\), from .* to / : /^RED: Nothing is redeemed \(Redis\)/,
    );
    const { severity, what, subject, since } = FAULT;
    const endedAt = isEnd ? expect.any(String) : null;
    const url = "https://vouchers.test/ops";
    expect(rest).toEqual({ severity, what, subject, since: since.toISOString(), endedAt, url });
  }
});

it("a fault that another fault causes is sent as a message only if it outlasts its cause", async () => {
  const { startTwo, told } = await open();
  const keepers = await startTwo();
  const pause: Attention = { ...FAULT, runbook: "VouchersQueuePaused", what: "The queue is paused", subject: "redeem" };
  await lookAll(keepers, [pause]);
  await lookAll(keepers, [FAULT, pause]);
  expect(told()).toEqual(["begin"]);
  await lookAll(keepers, [FAULT]);
  await lookAll(keepers, [FAULT]);
  expect(told()).toEqual(["begin", "begin"]);
  const ofOther = { ...pause, subject: "seal" };
  expect([findExplanation(FAULT, [FAULT, pause]), findExplanation(FAULT, [FAULT, ofOther])]).toEqual([
    pause,
    undefined,
  ]);
});

it("a new process sends the ends of faults that began before the process started, and repeats no message", async () => {
  const { startTwo, told } = await open();
  await lookAll(await startTwo(), [FAULT]);
  const keepers = await startTwo();
  await lookAll(keepers, [FAULT]);
  expect(told()).toEqual(["begin"]);
  await endFault(keepers);
  expect(told()).toEqual(["begin", "end"]);
});

it("a fault that returns within a minute keeps its start time, and causes no new message", async () => {
  const { start, told } = await open();
  const keeper = await start();
  await look(keeper, [FAULT]);
  await look(keeper, []);
  const [again] = await look(keeper, [{ ...FAULT, since: new Date() }]);
  expect(again?.since).toEqual(FAULT.since);
  expect(told()).toEqual(["begin"]);
});

it("a fault that only one of two processes finds is not ended by the other, and is reported once", async () => {
  const { startTwo, told } = await open();
  const [one, other] = await startTwo();
  for (let looks = 0; looks < 3; looks++) {
    await look(one, [FAULT]);
    expect(await look(other, [])).toEqual([]);
    await db.query("UPDATE faults SET since = since - interval '61 seconds'");
  }
  expect(told()).toEqual(["begin"]);
});

it("a process does not end a fault that it could not judge or whose kind it does not know", async () => {
  const { start } = await open();
  const keeper = await start();
  await look(keeper, [AMBER]);
  await beginFaults(db, [{ ...toRow(FAULT), kind: "VouchersOfTomorrow" }]);
  expect(await look(keeper, [], [AMBER.runbook])).toEqual([AMBER]);
  expect((await selectFaults(db)).map(({ kind, endedAt }) => [kind, endedAt]).toSorted()).toEqual([
    ["VouchersJobsFail", null],
    ["VouchersOfTomorrow", null],
  ]);
});

itOnOneRedis(
  "while Postgres is unreachable, one process sends a fault's message, and its end is sent once later",
  async () => {
    const { startTwo, told } = await open();
    const keepers = await startTwo();
    for (let looks = 0; looks < 3; looks++) await lookAll(keepers, [FAULT], "away");
    expect(told()).toEqual(["begin"]);
    await lookAll(keepers, [FAULT]);
    // Postgres has recorded the message, so other processes know of it too.
    expect(await selectFaults(db)).toMatchObject([{ told: "begin", since: FAULT.since }]);
    const next = await startTwo();
    await lookAll(next, [FAULT]);
    await endFault(next);
    expect(told()).toEqual(["begin", "end"]);
  },
);

itOnOneRedis("the message of a fault's end is sent once Postgres is reachable again", async () => {
  const { start, told } = await open();
  const keeper = await start();
  await look(keeper, [FAULT], "away");
  await look(keeper, [], "away");
  await endFault([keeper]);
  expect(told()).toEqual(["begin", "end"]);
  // The keeper reports the fault again when it recurs.
  await look(keeper, [FAULT], "away");
  expect(told()).toEqual(["begin", "end", "begin"]);
});

itOnOneRedis("without Postgres no alert is repeated, and without Redis too, each process sends its own", async () => {
  const { startTwo, told, toRedis } = await open();
  const keepers = await startTwo();
  await lookAll(keepers, [FAULT]);
  await lookAll(keepers, [FAULT]);
  toRedis.cut();
  await lookAll(keepers, [FAULT, { ...FAULT, subject: "Postgres" }], "away");
  expect(told()).toEqual(["begin", "begin", "begin"]);
  toRedis.mend();
});

it("a refused alert message is sent again every minute, and the overview reports its receiver", async () => {
  let status = 500;
  const { receiver, start, told } = await open({ status: () => status });
  const keeper = await start();
  for (let looks = 0; looks < 3; looks++) await look(keeper, [FAULT]);
  expect(receiver.received).toHaveLength(1);
  expect(await selectFaults(db)).toMatchObject([{ told: null, failingSince: expect.any(Date) }]);
  await pass("tried_at");
  await look(keeper, [FAULT]);
  expect(receiver.received).toHaveLength(2);
  status = 200;
  await pass("tried_at");
  await look(keeper, [FAULT]);
  expect(told()).toHaveLength(3);
  expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  expect(await selectFaults(db)).toMatchObject([{ told: "begin", failingSince: null }]);
});

it("the message of a fault's end that no receiver accepts is dropped after a day", async () => {
  const { start } = await open({ status: () => 500 });
  const keeper = await start();
  await look(keeper, [FAULT]);
  await endFault([keeper]);
  expect(await selectFaults(db)).toHaveLength(1);
  await pass("ended_at", "1 day");
  await look(keeper, []);
  expect(await selectFaults(db)).toEqual([]);
});

it("faults are recorded without a standby's confirmation, because the standby may be missing", async () => {
  const pool = openServicePool(servers.databaseUrl);
  const setting = await inTransaction(pool, async (tx) => {
    await beginFaults(tx, [toRow(FAULT)]);
    return (await tx.query("SHOW synchronous_commit")).rows[0].synchronous_commit;
  });
  await pool.end();
  expect(setting).toBe("local");
});

it("alert messages go to a private address only if WEBHOOK_ALLOW_PRIVATE allows it", async () => {
  const { receiver, start } = await open({ allowPrivate: false });
  await look(await start(), [FAULT]);
  expect(receiver.received).toEqual([]);
});

it.each([
  ["https://chat.googleapis.com/v1/spaces/A/messages?key=k", ["text"]],
  ["https://discord.com/api/webhooks/1/x", ["content", "allowed_mentions"]],
  ["https://ptb.discord.com/api/webhooks/1/x", ["content", "allowed_mentions"]],
  ["https://hooks.slack.com/services/T/B/x", ["text", "severity", "what", "subject", "since", "endedAt", "url"]],
])("an alert message to %s has the fields that its receiver expects", (receiver, fields) => {
  const told = { ...FAULT, what: "x".repeat(3_000), endedAt: null };
  const body: { content?: string } = alertBody(receiver, told, "https://vouchers.test/ops");
  expect(Object.keys(body)).toEqual(fields);
  expect(body.content?.length ?? 0).toBeLessThanOrEqual(2_000);
});

it("an alert message is one line of text, in which Slack finds no link and no mention", () => {
  const told = { ...FAULT, subject: "<!channel>\n<https://evil.example|click>", endedAt: null };
  const { text } = alertBody("https://hooks.slack.test/x", told, "https://vouchers.test/ops") as { text: string };
  expect(text).not.toMatch(/[<>\n]/);
  expect(text).toContain("‹!channel› ‹https://evil.example|click›");
  expect(text).toContain("https://vouchers.test/ops");
});

function toRow({ runbook, severity, what, subject, since }: Attention) {
  return { kind: runbook, severity, what, subject, since, page: "", told: null };
}

/** Opens alert keepers of API processes, whose connection to Redis the test interrupts, and a receiver. */
async function open({ status = (): number => 204, allowPrivate = true } = {}) {
  const receiver = await startPartnerServer({ answer: (response) => response.writeHead(status()).end("ok") });
  onTestFinished(() => receiver.close());
  const toRedis = await openWayToRedis();
  onTestFinished(async () => void (await toRedis.close()));
  const log = openLogger("silent", "test");
  const webhookSender = openWebhookSender({ allowPrivate });
  onTestFinished(() => webhookSender.close());
  const start = async () => {
    const pool = openServicePool(servers.databaseUrl, 2);
    const redis = openFailFast(toRedis.url, "test", log);
    await untilReady(redis, 10_000);
    onTestFinished(async () => {
      redis.disconnect();
      await pool.end();
    });
    const config = { baseUrl: "https://vouchers.test", alerts: { url: receiver.url, secret: SECRET } };
    const deployment = { id: servers.deploymentId, clock: { steadyNow: () => new Date() } };
    return new FaultKeeper({ pool, redis, webhookSender, log, deployment, config, faults: allFaults([]) });
  };
  /** The messages so far, as `begin` and `end`. */
  const told = () => receiver.received.map(({ body }) => (JSON.parse(body).endedAt === null ? "begin" : "end"));
  return {
    receiver,
    toRedis,
    start,
    startTwo: async (): Promise<[FaultKeeper, FaultKeeper]> => [await start(), await start()],
    told,
  };
}

/** Opens a proxy to the single Redis, or a cluster's addresses alone: tests that interrupt it do not run there. */
async function openWayToRedis(): ReturnType<typeof openTcpProxy> {
  const url = servers.redisUrl;
  const untouched = { url, close: async () => undefined } as Awaited<ReturnType<typeof openTcpProxy>>;
  return url.includes(",") ? untouched : openTcpProxy(url);
}

/** Runs a check that finds these faults. `how` lists the kinds of fault not judged, or is `away` without Postgres. */
async function look(keeper: FaultKeeper, found: readonly Attention[], how: readonly string[] | "away" = []) {
  const recorded = how === "away" ? null : await selectFaults(db);
  const unknown = new Set(how === "away" ? [] : how);
  const attention = await keeper.keep({ found, unknown, recorded });
  await keeper.told();
  return attention;
}

const lookAll = (keepers: readonly FaultKeeper[], found: readonly Attention[], how: readonly string[] | "away" = []) =>
  Promise.all(keepers.map((keeper) => look(keeper, found, how)));

/** Makes all keepers find no fault twice, the second time after the time that ends a fault. */
async function endFault(keepers: readonly FaultKeeper[]): Promise<void> {
  await lookAll(keepers, []);
  await pass("ended_at");
  await lookAll(keepers, []);
}

/** Moves the column `since` of all faults back by `time`, as if that much time had passed. */
async function pass(since: "ended_at" | "tried_at", time = "61 seconds"): Promise<void> {
  await db.query(`UPDATE faults SET ${since} = ${since} - $1::interval`, [time]);
}
