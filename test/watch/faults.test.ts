import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { STALL_MAX_MS, STALLS_WITHIN_MS } from "../../src/core/metrics/stall-meter.ts";
import { addCounts, COUNTED, FaultCounter } from "../../src/core/processes/fault-counts.ts";
import { findSuccessors, type ReportedProcess } from "../../src/core/processes/read-processes.ts";
import { addOutcomes, NO_OUTCOMES, RedeemOutcomes } from "../../src/core/processes/redeem-outcomes.ts";
import { QUEUES } from "../../src/platform/queues/queue-settings.ts";
import { listShards } from "../../src/platform/queues/shards.ts";
import { countMissingStandbys } from "../../src/watch/count-missing-standbys.ts";
import type { Facts } from "../../src/watch/facts.ts";
import { FAULTS } from "../../src/watch/faults.ts";
import { makeFinders } from "../../src/webhooks/find-faults.ts";
import { selectorsOf } from "../support/promql.ts";

const read = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8");

describe("the table of faults", () => {
  const rules = read("observability/prometheus-rules.yml");
  const alerts = Array.from(
    rules.matchAll(/- alert: (\w+)\n([\s\S]*?)(?=\n\n|$(?![\s\S]))/g),
    ([, name = "", rule = ""]) => ({
      name,
      expr: /expr: (?:>-\n)?([\s\S]*?)\n +(?:for|labels):/.exec(rule)?.[1] ?? "",
      after: /for: (\w+)/.exec(rule)?.[1],
      severity: /severity: (\w+)/.exec(rule)?.[1],
    }),
  );
  const withAlert = FAULTS.filter(({ hasAlert }) => hasAlert);

  it("the table of faults has exactly the alerts of Prometheus, with their severities", () => {
    const severities = { red: "critical", amber: "warning", grey: "none" };
    expect(alerts.map(({ name, severity }) => [name, severity]).toSorted()).toEqual(
      withAlert
        .flatMap(({ name, severity, ofOtherQueues = severity }) =>
          [...new Set([severity, ofOtherQueues])].map((each) => [name, severities[each]]),
        )
        .toSorted(),
    );
  });

  it.each<[name: string, broken: Partial<Facts>]>([
    ["VouchersShardUnserved", { processes: [] }],
    ["VouchersQueuePaused", { queues: everyBacklog({ paused: true }) }],
  ])("%s has the same severity for each queue on the overview and in Prometheus", (name, broken) => {
    const onOverview = (find(name, broken) ?? []).map(({ subject, severity = "red" }) => [subject, severity]);
    const severityIn = { critical: "red", warning: "amber" } as Record<string, string>;
    const inPrometheus = QUEUES.flatMap((queue) =>
      alerts
        .filter((alert) => alert.name === name && isAbout(alert.expr, queue.name))
        .map(({ severity }) => [queue.name, severityIn[`${severity}`]]),
    );
    expect(inPrometheus).toEqual(onOverview);
    expect(inPrometheus).toContainEqual(["redeem", "red"]);
  });

  it.each(
    withAlert.filter(({ limit }) => limit !== null),
  )("the alert $name compares with the limit of the table of faults", ({ name, limit }) => {
    const alert = alerts.find((one) => one.name === name);
    const compared = Array.from(`${alert?.expr}`.matchAll(/> ([\d.]+)|\[(\d+)s\]/g), ([, above, span]) =>
      Number(above ?? span),
    );
    const minutes = alert?.after === `${limit}m` ? [limit] : [];
    expect([...compared, ...minutes], alert?.expr).toContain(limit);
  });

  it("the alerts for stalls and waiting redeems have the limits of the stall meter and the overview", () => {
    const [stalls, backlog] = ["VouchersEventLoopBlocked", "VouchersQueueBacklog"].map((wanted) =>
      alerts.find(({ name }) => name === wanted),
    );
    expect(stalls?.expr).toContain(`[${STALLS_WITHIN_MS / 60_000}m]) > ${STALL_MAX_MS / 1_000}`);
    const waiting = { queues: redeems({ waiting: 1, active: 1, oldestWaitingMs: 2_001 }) };
    expect(find("VouchersQueueBacklog", waiting)).toMatchObject([{ confirmMs: 60_000 }]);
    expect(backlog?.after).toBe("1m");
  });

  it("the table of faults has exactly the entries of the runbook", () => {
    const runbook = /^## Alerts$([\s\S]*?)^## /m.exec(read("operations.md"))?.[1] ?? "";
    const headings = Array.from(runbook.matchAll(/^### (\w+)$/gm), ([, name]) => name).filter(
      (name) => name !== "Preparation",
    );
    expect(headings.toSorted()).toEqual(FAULTS.map(({ name }) => name).toSorted());
  });

  it("the table of faults is in the order of harm, and the service or Prometheus finds each fault", () => {
    const order = [
      "nothing is redeemed",
      "some are refused",
      "proof is late",
      "webhooks are late",
      "sign-ins fail",
      "stock",
    ];
    const places = FAULTS.map(({ harm }) => order.indexOf(harm));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(FAULTS.filter(({ find, hasAlert }) => find === null && !hasAlert)).toEqual([]);
  });

  it("the table of faults has exactly two kinds that only Prometheus finds, and says why", () => {
    expect(FAULTS.filter(({ unseen }) => unseen !== null).map(({ name, unseen }) => [name, unseen])).toEqual([
      ["VouchersApiDown", "no API process is left to look"],
      ["VouchersWorkersDown", "VouchersShardUnserved tells it"],
    ]);
    expect(FAULTS.filter(({ find, unseen }) => (find === null) !== (unseen !== null))).toEqual([]);
  });

  it.each<[kind: keyof typeof COUNTED, alert: string]>([
    ["overloaded", "VouchersOverloaded"],
    ["internalErrors", "VouchersInternalErrors"],
    ["codesGuessed", "VouchersCodesGuessed"],
    ["referencesReused", "VouchersReferencesReused"],
    ["foreignMessages", "VouchersForeignMessages"],
    ["logLinesDropped", "VouchersLogLinesDropped"],
    ["sweepFailures", "VouchersSweepFails"],
  ])("%s are remembered for as long as the alert %s looks back", (kind, name) => {
    expect(alerts.find((alert) => alert.name === name)?.expr).toContain(`[${COUNTED[kind]}m]`);
  });

  it.each<[name: string, measured: (value: number) => Partial<Facts>]>([
    ["VouchersOverloaded", (overloaded) => ({ counts: { overloaded } })],
    ["VouchersErrors", (share) => ({ counts: { responses: 1_000, errors: share * 1_000 } })],
    ["VouchersForeignMessages", (foreignMessages) => ({ counts: { foreignMessages } })],
    ["VouchersPoolExhausted", (waitingCalls) => ({ processes: [worker({ waitingCalls })] })],
    ["VouchersRedeemSlow", (seconds) => ({ latencyMs: { p50: 1, p99: seconds * 1_000 } })],
    ["VouchersInternalErrors", (internalErrors) => ({ counts: { internalErrors } })],
    ["VouchersReferencesReused", (referencesReused) => ({ counts: { referencesReused } })],
    ["VouchersCodesGuessed", (codesGuessed) => ({ counts: { codesGuessed } })],
    ["VouchersSealLag", (seconds) => ({ database: { ...DATABASE, sealLagMs: seconds * 1_000 } })],
    ["VouchersSweepFails", (count) => ({ counts: { "sweepFailures a": count, "sweepFailuresNow a": 1 } })],
    ["VouchersLogLinesDropped", (logLinesDropped) => ({ counts: { logLinesDropped } })],
    ["VouchersWebhooksLate", (seconds) => ({ database: ofWebhooks({ oldestDueMs: seconds * 1_000 }) })],
    ["VouchersWebhookOutboxGrows", (outbox) => ({ database: ofWebhooks({ outbox }) })],
  ])("%s is found above its limit for as long as its alert waits, and stays while unknown", (name, measured) => {
    const limit = FAULTS.find((one) => one.name === name)?.limit ?? Number.NaN;
    expect(find(name, measured(limit))).toEqual([]);
    const [found] = find(name, measured(limit * 1.1 + 0.001)) ?? [];
    const [, minutes = 0] = /^(\d+)m$/.exec(alerts.find((alert) => alert.name === name)?.after ?? "") ?? [];
    expect({ name, confirmMs: found?.confirmMs ?? 0 }).toEqual({ name, confirmMs: Number(minutes) * 60_000 });
    expect(find(name, { counts: null, processes: null, latencyMs: null, database: null })).toBeNull();
  });
});

/** Whether the first selector of an expression matches the queue. */
function isAbout(expression: string, queue: string): boolean {
  const matchers = selectorsOf(expression)[0]?.matchers.filter(({ label }) => label === "queue") ?? [];
  return matchers.every(({ operator, value }) => {
    const isMatch = operator.endsWith("~") ? new RegExp(`^(?:${value})$`).test(queue) : value === queue;
    return isMatch !== operator.startsWith("!");
  });
}

const NOW = new Date("2026-06-01T12:00:00Z");
/** Postgres with the one standby that it waits for. */
const STANDBYS = {
  version: "17",
  isStandby: false,
  standbyNames: "FIRST 1 (a)",
  standbys: ["a"],
  lagMs: null,
  connections: 1,
  connectionsMax: 100,
  sizeBytes: 1,
};
const DATABASE: NonNullable<Facts["database"]> = {
  now: NOW,
  brokenChains: [],
  stock: [],
  alertsFailingSince: null,
  sealLagMs: 0,
  ofWings: {},
};
const ofWebhooks = (waiting: { outbox?: number; oldestDueMs?: number }) => ({
  ...DATABASE,
  ofWings: makeFinders([], { outbox: 0, oldestDueMs: 0, ...waiting }),
});
const SHARDS = listShards("deployment", 2);

const worker = (changes: Partial<ReportedProcess> = {}): ReportedProcess => ({
  id: "w",
  role: "worker",
  host: "host",
  pid: 1,
  version: "1",
  queues: ["redeem", "seal", "sweep"],
  queueShards: [2],
  workerShards: null,
  since: "2026-06-01T11:00:00.000Z",
  at: "2026-06-01T11:59:58.000Z",
  endedAt: null,
  cpu: 0,
  memoryBytes: 1,
  stallingMs: 0,
  problem: null,
  redeems: NO_OUTCOMES,
  state: "up",
  ...changes,
});

const backlog = (queue: string, shard: string, changes = {}) => ({
  queue,
  shard,
  waiting: 0,
  active: 0,
  failed: 0,
  oldestWaitingMs: 0,
  paused: false,
  ...changes,
});

/** Backlogs of redeems, with changes in each shard or in one. */
const redeems = (changes: object, only?: string) =>
  SHARDS.map((shard) => ({
    shard,
    queues: [backlog("redeem", shard.name, only === undefined || only === shard.name ? changes : {})],
  }));

/** Backlogs of every queue in the first shard. A function declaration, because lists of cases need it early. */
function everyBacklog(changes: object) {
  return listShards("deployment", 2)
    .slice(0, 1)
    .map((shard) => ({
      shard,
      queues: QUEUES.map(({ name }) => backlog(name, shard.name, changes)),
    }));
}

const facts = (changes: Partial<Facts> = {}): Facts => ({
  now: NOW,
  problems: { postgres: null, redis: null },
  refusing: [],
  shards: SHARDS,
  clockAheadMs: 0,
  redeems: NO_OUTCOMES,
  self: { id: "a", role: "api", pid: 1, host: "host" },
  otherApis: [worker({ id: "b", role: "api", pid: 2, queues: [] })],
  isAlone: false,
  processes: [worker()],
  counts: {},
  latencyMs: { p50: null, p99: null },
  queues: redeems({}),
  pauses: [],
  postgres: STANDBYS,
  database: DATABASE,
  unsweptMs: 0,
  hasSwept: true,
  sweepMark: "1",
  ...changes,
});

const find = (name: string, changes: Partial<Facts> = {}, before: { what: string }[] = []) => {
  const kind = FAULTS.find((one) => one.name === name);
  return kind?.find?.(facts(changes), kind.limit ?? 0, before);
};
const nothing = (changes: Partial<Facts>) => {
  const [found] = find("VouchersNothingRedeemed", changes) ?? [];
  return found?.what ?? null;
};
const paused = { queue: "redeem", isPaused: true, by: "Ada", reason: null, since: NOW };
const MANY = listShards("deployment", 16);
const othersOf = (shards: typeof MANY) => MANY.filter((shard) => !shards.includes(shard)).map(({ index }) => index);
const backlogsWhere = (shards: typeof MANY, changes: object) =>
  MANY.map((shard) => ({ shard, queues: [backlog("redeem", shard.name, shards.includes(shard) ? changes : {})] }));
/** Redeems of so many vouchers had no answer. */
const outcomes = (answered: number, unanswered: number, vouchers = unanswered) => ({
  answered,
  unanswered,
  vouchers: Array.from({ length: vouchers }, (_, index) => `voucher ${index}`),
});
const gone = worker({ state: "gone" });

describe("what each look judges", () => {
  it("a healthy deployment has no fault, with and without traffic", () => {
    const busy = { recent: outcomes(500, 0), minute: outcomes(3_000, 2) };
    for (const redeems of [NO_OUTCOMES, busy])
      for (const { name, find } of FAULTS) {
        if (find === null || name === "BatchEnds") continue;
        expect(find(facts({ redeems }), FAULTS.find((one) => one.name === name)?.limit ?? 0, []) ?? [], name).toEqual(
          [],
        );
      }
  });

  it.each<[cause: string, changes: Partial<Facts>, what: string]>([
    [
      "no answer",
      { redeems: { recent: outcomes(0, 3), minute: outcomes(90, 3) } },
      "3 redeems had no answer, and none had one",
    ],
    [
      "no answer, slowly",
      { redeems: { recent: outcomes(0, 1), minute: outcomes(0, 3) } },
      "3 redeems had no answer, and none had one",
    ],
    ["a frozen worker", { processes: [gone] }, "no worker has sent a heartbeat for the queue redeem"],
    ["no worker at all", { processes: [] }, "no worker has sent a heartbeat for the queue redeem"],
    [
      "workers of other queues",
      { processes: [worker({ queues: ["seal"] })] },
      "no worker has sent a heartbeat for the queue redeem",
    ],
    [
      "workers of another number of shards",
      { processes: [worker({ queueShards: [4] })] },
      "no worker has sent a heartbeat for the queue redeem",
    ],
    ["a pause", { queues: redeems({ paused: true }), pauses: [paused] }, "the queue redeem is paused by Ada"],
    ["a pause made elsewhere", { queues: redeems({ paused: true }) }, "the queue redeem is paused"],
    [
      "a pause after a resumption",
      { queues: redeems({ paused: true }), pauses: [{ ...paused, isPaused: false }] },
      "the queue redeem is paused",
    ],
    [
      "one shard paused, the other without a worker",
      { queues: redeems({ paused: true }, "0/2"), processes: [worker({ workerShards: [0] })] },
      "the queue redeem is paused in shard 0/2",
    ],
    [
      "waiting jobs",
      { queues: redeems({ waiting: 1, oldestWaitingMs: 6_000 }) },
      "redeems wait, and no worker takes them",
    ],
    [
      "Postgres",
      { problems: { postgres: "No answer from Postgres.", redis: null }, processes: null, otherApis: [] },
      "no answer from Postgres",
    ],
    [
      "Redis",
      { problems: { postgres: null, redis: "Redis refuses writes: OOM" }, processes: null, otherApis: [] },
      "Redis refuses writes: OOM",
    ],
  ])("the fault that nothing is redeemed is found with its cause: %s", (_, changes, what) => {
    expect(nothing(changes)).toBe(`Nothing is redeemed: ${what}`);
  });

  it.each<[why: string, changes: Partial<Facts>]>([
    ["two redeems without an answer", { redeems: { recent: outcomes(0, 2), minute: outcomes(0, 2) } }],
    ["redeems of two vouchers have no answer", { redeems: { recent: outcomes(0, 9, 2), minute: outcomes(0, 9, 2) } }],
    ["some redeems have an answer", { redeems: { recent: outcomes(1, 9), minute: outcomes(1, 9) } }],
    ["one shard is paused", { queues: redeems({ paused: true }, "1/2") }],
    ["one shard has no worker", { processes: [worker({ workerShards: [0] })] }],
    ["two workers have a shard each", { processes: [worker({ workerShards: [0] }), worker({ workerShards: [1] })] }],
    ["jobs wait while others run", { queues: redeems({ waiting: 1, oldestWaitingMs: 6_000, active: 1 }) }],
    ["another API process can serve", { problems: { postgres: "No answer from Postgres.", redis: null } }],
    [
      "an unseen process can serve",
      { problems: { postgres: null, redis: "No answer from Redis." }, isAlone: true, otherApis: [], processes: null },
    ],
    ["a worker of an earlier release reports no shards", { processes: [worker({ queueShards: [] })] }],
  ])("the fault that nothing is redeemed is not found while %s", (_, changes) => {
    expect(nothing(changes)).toBeNull();
  });

  it("the fault that nothing is redeemed stays as it was while heartbeats are not known", () => {
    const redeems = (what: string) =>
      find("VouchersNothingRedeemed", { processes: null }, [{ what: `Nothing is redeemed: ${what}` }]);
    expect(redeems("no worker has sent a heartbeat for the queue redeem")).toBeNull();
    // The cause has ended.
    expect(redeems("no answer from Postgres")).toEqual([]);
    for (const name of ["VouchersShardUnserved", "VouchersProcessDown"])
      expect(find(name, { processes: null })).toBeNull();
    for (const name of ["VouchersNothingRedeemed", "VouchersRedeemsUnanswered"])
      expect(find(name, { redeems: null })).toBeNull();
  });

  it("a shard without a worker, or paused, is named, and other queues than that of redeems are amber", () => {
    expect(find("VouchersShardUnserved", { processes: [worker({ workerShards: [0] })] })).toMatchObject([
      { subject: "redeem", what: "No worker has sent a heartbeat for the queue redeem in shard 1/2" },
      { subject: "seal", severity: "amber" },
    ]);
    expect(find("VouchersQueuePaused", { queues: redeems({ paused: true }, "1/2"), pauses: [paused] })).toMatchObject([
      { subject: "redeem", what: "The queue redeem is paused in shard 1/2 by Ada" },
    ]);
    const sweep = [{ shard: SHARDS[0], queues: [backlog("sweep", "0/2", { paused: true })] }];
    expect(find("VouchersQueuePaused", { queues: sweep as Facts["queues"] })).toMatchObject([
      { subject: "sweep", severity: "amber" },
    ]);
  });

  it("shards whose servers do not answer or refuse writes are named with the servers' words", () => {
    const away = SHARDS.map((shard) => ({ shard, queues: null })).slice(1);
    expect(find("VouchersShardAway", { queues: away })).toMatchObject([
      { subject: "Redis", what: "A Redis server does not answer in shard 1/2" },
    ]);
    const refusing = [{ shard: SHARDS[0], refusal: "OOM" }] as Facts["refusing"];
    expect(find("VouchersShardAway", { queues: away, refusing })).toMatchObject([
      { what: "A Redis server does not answer in shard 1/2; a Redis server refuses writes: OOM in shard 0/2" },
    ]);
  });

  it.each<[name: string, touched: (shards: typeof MANY) => Partial<Facts>]>([
    ["VouchersQueuePaused", (paused) => ({ queues: backlogsWhere(paused, { paused: true }) })],
    [
      "VouchersShardUnserved",
      (unserved) => ({ processes: [worker({ queueShards: [16], workerShards: othersOf(unserved) })] }),
    ],
    [
      "VouchersShardAway",
      (away) => ({ queues: MANY.map((shard) => ({ shard, queues: away.includes(shard) ? null : [] })) }),
    ],
    ["StandbyAway", ({ length }) => ({ postgres: { ...STANDBYS, standbyNames: `${length} (a, b, c)`, standbys: [] } })],
  ])("a set of shards or standbys that changes is the same fault, with another text: %s", (name, touched) => {
    const found = [1, 2, 12].map((count) => find(name, { shards: MANY, ...touched(MANY.slice(0, count)) }) ?? []);
    const keys = found.map((all) => all.map(({ subject, page }) => [subject, page]));
    expect(keys[0]?.length).toBeGreaterThan(0);
    expect(keys).toEqual(keys.map(() => keys[0]));
    expect(new Set(found.map(([one]) => one?.what)).size).toBe(3);
    expect(Math.max(...found.map(([one]) => `${one?.what}`.length))).toBeLessThan(160);
  });

  it("an API process that alone cannot use a server is named, and not the server", () => {
    const problems = { postgres: "No answer from Postgres.", redis: null };
    const what = "A process cannot serve requests: No answer from Postgres";
    const own = { subject: "api 1 on host", what, severity: "amber" };
    expect(find("VouchersServerAway", { problems })).toMatchObject([own]);
    const otherApis = [worker({ id: "b", role: "api", pid: 2, problem: "No answer from Postgres." })];
    expect(find("VouchersServerAway", { otherApis })).toMatchObject([{ ...own, subject: "api 2 on host" }]);
    expect(find("VouchersServerAway", { problems, otherApis })).toMatchObject([
      { subject: "Postgres", what: "No answer from Postgres" },
    ]);
    const unseen = { problems: { postgres: null, redis: "No answer from Redis." }, otherApis: [] };
    expect(find("VouchersServerAway", { ...unseen, isAlone: true })).toMatchObject([
      { subject: "api 1 on host", severity: "amber" },
    ]);
    expect(find("VouchersServerAway", unseen)).toMatchObject([{ subject: "Redis" }]);
  });

  it("a process that vanished, and one that stalls again and again, are named", () => {
    expect(find("VouchersProcessDown", { processes: [gone] })).toMatchObject([
      { subject: "worker 1 on host", since: new Date(gone.at) },
    ]);
    expect(find("VouchersProcessDown", { processes: [worker({ state: "ended" })] })).toEqual([]);
    const stalling = (minutes: number) => ({ processes: [worker({ stallingMs: minutes * 60_000 })] });
    expect(find("VouchersEventLoopBlocked", stalling(4.9))).toEqual([]);
    expect(find("VouchersEventLoopBlocked", stalling(5))).toMatchObject([{ subject: "worker 1 on host" }]);
  });
});

it("redeem outcomes count as recent for two reports, and are forgotten after twelve", () => {
  const counts = new RedeemOutcomes();
  counts.answered();
  counts.unanswered(null);
  const both = outcomes(1, 1, 0);
  const none = outcomes(0, 0);
  for (let reports = 0; reports <= 2; reports += 1) {
    expect(counts.read()).toEqual({ recent: both, minute: both });
    counts.advance();
  }
  expect(counts.read()).toEqual({ recent: none, minute: both });
  for (let reports = 3; reports <= 12; reports += 1) counts.advance();
  expect(counts.read()).toEqual({ recent: none, minute: none });
});

it("redeems without an answer are amber if they are of few vouchers in all processes together, otherwise red", () => {
  const [one, other] = [new RedeemOutcomes(), new RedeemOutcomes()];
  const judge = () => {
    const redeems = addOutcomes([one.read(), other.read()]);
    const [some] = find("VouchersRedeemsUnanswered", { redeems }) ?? [];
    return [nothing({ redeems }), some && (some.severity ?? "red")];
  };
  for (const code of ["locked", "locked", "also locked"]) for (const counts of [one, other]) counts.unanswered(code);
  other.unanswered(null);
  expect(judge()).toEqual([null, "amber"]);
  one.answered();
  expect(judge()).toEqual([null, "amber"]);
  other.unanswered("another");
  expect(judge()).toEqual([null, "red"]);
  for (let reports = 0; reports <= 12; reports += 1) for (const counts of [one, other]) counts.advance();
  for (const code of ["a", "b", "c"]) other.unanswered(code);
  expect(judge()).toEqual(["Nothing is redeemed: 3 redeems had no answer, and none had one", undefined]);
});

it("redeem outcomes of a process of an earlier release count, but without vouchers", () => {
  const earlier = { answered: 1, unanswered: 4 };
  const { minute } = addOutcomes([{ recent: earlier, minute: earlier } as never, NO_OUTCOMES]);
  expect(minute).toEqual(outcomes(1, 4, 0));
});

it("counts of a process are forgotten after a time, and only what fails now in the sweeper is reported", () => {
  let nowMs = 0;
  const counter = new FaultCounter(() => nowMs);
  for (let failures = 0; failures < 4; failures += 1) {
    counter.count("sweepFailures", "removeJobs");
    counter.count("sweepFailuresNow", "removeJobs");
  }
  counter.count("overloaded", undefined, 2);
  const after = (minutes: number) => {
    nowMs = minutes * 60_000;
    const counts = addCounts([counter.read(), { overloaded: 1 }, undefined]);
    return [counts.overloaded, find("VouchersSweepFails", { counts })?.map(({ subject }) => subject)];
  };
  expect(after(0)).toEqual([3, ["removeJobs"]]);
  expect(after(1)).toEqual([3, ["removeJobs"]]);
  expect(after(1.1)).toEqual([3, []]);
  expect(after(5)).toEqual([3, []]);
  expect(after(5.1)).toEqual([1, []]);
  expect(counter.read()).toEqual({ "sweepFailures removeJobs": 4 });
  after(15.2);
  expect(counter.read()).toEqual({});
});

describe("who takes the place of a process that vanished", () => {
  const at = (second: number) => new Date(Date.parse("2026-06-01T12:00:00Z") + second * 1_000).toISOString();
  const lost = worker({ id: "lost", state: "gone", at: at(1) });
  const later = worker({ id: "later", since: at(2) });
  /** One that began a minute before the other vanished. */
  const sooner = worker({ id: "sooner", since: at(-60) });
  const ended = (id: string, second: number) => worker({ id, state: "ended", at: at(second), endedAt: at(second) });
  const successors = (all: ReportedProcess[], places = {}) => [...findSuccessors(all, places)];

  it("a later process of the same kind takes the place of one that vanished, and of no other", () => {
    expect(successors([lost, later])).toEqual([["lost", "later"]]);
    expect(successors([lost, { ...lost, id: "lost too" }, later])).toEqual([["lost", "later"]]);
    expect(successors([lost, later], { later: "another" })).toEqual([]);
  });

  it("a process that began shortly before another one vanished takes its place, because as many run as before", () => {
    expect(successors([worker(), lost, sooner])).toEqual([["lost", "sooner"]]);
    expect(successors([lost, { ...lost, id: "lost too" }, sooner])).toEqual([["lost", "sooner"]]);
    expect(successors([lost, sooner], { sooner: "another" })).toEqual([]);
  });

  it("processes that began together replace none of each other", () => {
    const [young, other] = [at(-100), at(-90)];
    expect(successors([{ ...lost, since: young }, worker({ since: other })])).toEqual([]);
  });

  it("a process that replaced one that ended properly does not also replace one that vanished later", () => {
    expect(successors([ended("old", -50), lost, sooner])).toEqual([["old", "sooner"]]);
    // It restarted in its place.
    expect(successors([ended("old", -61), lost, sooner])).toEqual([["old", "sooner"]]);
    expect(successors([ended("old", -50), lost, sooner], { sooner: "old" })).toEqual([]);
  });

  it("a process that ended properly with no successor leaves a later one to another that vanished", () => {
    expect(successors([ended("old", 0), lost, later])).toEqual([["lost", "later"]]);
  });

  it("a process takes the place of one that did the same, before that of one that did less", () => {
    const ofOneShard = { ...lost, id: "lost, of one shard", at: at(0), workerShards: [0] };
    const laterOfOneShard = { ...later, id: "later, of one shard", workerShards: [0] };
    expect(successors([ofOneShard, lost, later])).toEqual([["lost", "later"]]);
    expect(successors([ofOneShard, lost, later, laterOfOneShard])).toEqual([
      ["lost, of one shard", "later, of one shard"],
      ["lost", "later"],
    ]);
    expect(successors([ofOneShard, later])).toEqual([["lost, of one shard", "later"]]);
  });

  it.each<[string, Partial<ReportedProcess>]>([
    ["began long before", { since: at(-120) }],
    ["has ended", { state: "ended" }],
    ["is of another role", { role: "api" }],
    ["does not serve all of its queues", { queues: ["seal"] }],
    ["serves some shards only", { workerShards: [0] }],
  ])("a process does not take the place if it %s", (_, changes) => {
    expect(successors([lost, { ...later, ...changes }])).toEqual([]);
  });
});

it.each<[names: string, connected: string[], missing: number]>([
  ["", [], 0],
  ["standby", [], 1],
  ["a, b", ["b"], 0],
  ["ANY 2 (a, b, c)", ["c"], 1],
  ["first 1 (a)", [], 1],
  ["first 1 (a)", ["A"], 0],
  ["3 (a, b, c)", ["a", "b", "c"], 0],
  // The one that is connected is asynchronous.
  ["FIRST 1 (a)", ["reports"], 1],
  ["a", ["reports"], 1],
  ['2 (a, "the ""b""")', ["a", 'the "b"', "reports"], 0],
  ['2 (a, "the ""b""")', ["a", "the", "reports"], 1],
  ["ANY 1 (*)", ["reports"], 0],
  ["*", [], 1],
])("of the standbys %j, with %j connected, %i are missing", (standbyNames, standbys, missing) => {
  expect(countMissingStandbys({ standbyNames, standbys })).toBe(missing);
});
