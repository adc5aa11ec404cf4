import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { STALL_MAX_MS, STALLS_WITHIN_MS } from "../../src/core/metrics/stall-meter.ts";
import { findSuccessors, type ReportedProcess } from "../../src/core/processes/read-processes.ts";
import { NO_OUTCOMES, RedeemOutcomes } from "../../src/core/processes/redeem-outcomes.ts";
import { listShards } from "../../src/platform/queues/shards.ts";
import type { Facts } from "../../src/watch/facts.ts";
import { FAULTS } from "../../src/watch/faults.ts";

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
      withAlert.map(({ name, severity }) => [name, severities[severity]]).toSorted(),
    );
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

  it("the alert of stalls has the numbers of the meter, and that of waiting redeems the time of the overview", () => {
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

  it("the table of faults has each fault in the order of its harm, and none that nothing finds", () => {
    const order = ["nothing is redeemed", "some are refused", "proof is late", "webhooks are late", "stock"];
    const places = FAULTS.map(({ harm }) => order.indexOf(harm));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(FAULTS.filter(({ find, hasAlert }) => find === null && !hasAlert)).toEqual([]);
  });
});

const NOW = new Date("2026-06-01T12:00:00Z");
/** Postgres with the one standby that it waits for. */
const STANDBYS = {
  version: "17",
  isStandby: false,
  standbyNames: "FIRST 1 (a)",
  streaming: 1,
  lagMs: null,
  connections: 1,
  connectionsMax: 100,
  sizeBytes: 1,
};
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

const facts = (changes: Partial<Facts> = {}): Facts => ({
  now: NOW,
  problems: { postgres: null, redis: null },
  refusing: [],
  shards: SHARDS,
  clockAheadMs: 0,
  redeems: NO_OUTCOMES,
  self: "a",
  processes: [worker(), worker({ id: "a", role: "api", queues: [] }), worker({ id: "b", role: "api", queues: [] })],
  queues: redeems({}),
  pauses: [],
  postgres: STANDBYS,
  database: null,
  unsweptMs: 0,
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
const outcomes = (answered: number, unanswered: number) => ({ answered, unanswered });
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

  const paused = { queue: "redeem", isPaused: true, by: "Ada", since: NOW };
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
      "the queue redeem is paused",
    ],
    [
      "waiting jobs",
      { queues: redeems({ waiting: 1, oldestWaitingMs: 6_000 }) },
      "redeems wait, and no worker takes them",
    ],
    [
      "Postgres",
      { problems: { postgres: "No answer from Postgres.", redis: null }, processes: null },
      "no answer from Postgres",
    ],
    [
      "Redis",
      { problems: { postgres: null, redis: "Redis refuses writes: OOM" }, processes: null },
      "Redis refuses writes: OOM",
    ],
  ])("nothing is redeemed is found, and why: %s", (_, changes, what) => {
    expect(nothing(changes)).toBe(`Nothing is redeemed: ${what}`);
  });

  it.each<[why: string, changes: Partial<Facts>]>([
    ["two redeems without an answer", { redeems: { recent: outcomes(0, 2), minute: outcomes(0, 2) } }],
    ["some redeems have an answer", { redeems: { recent: outcomes(1, 9), minute: outcomes(1, 9) } }],
    ["one shard is paused", { queues: redeems({ paused: true }, "1/2") }],
    ["one shard has no worker", { processes: [worker({ workerShards: [0] })] }],
    ["two workers have a shard each", { processes: [worker({ workerShards: [0] }), worker({ workerShards: [1] })] }],
    ["jobs wait while others run", { queues: redeems({ waiting: 1, oldestWaitingMs: 6_000, active: 1 }) }],
    ["another API process can serve", { problems: { postgres: "No answer from Postgres.", redis: null } }],
    ["a worker of an earlier release reports no shards", { processes: [worker({ queueShards: [] })] }],
  ])("nothing is redeemed is not found while %s", (_, changes) => {
    expect(nothing(changes)).toBeNull();
  });

  it("nothing is redeemed stays what it was while heartbeats are not known", () => {
    const redeems = (what: string) =>
      find("VouchersNothingRedeemed", { processes: null }, [{ what: `Nothing is redeemed: ${what}` }]);
    expect(redeems("no worker has sent a heartbeat for the queue redeem")).toBeNull();
    // The cause has ended.
    expect(redeems("no answer from Postgres")).toEqual([]);
    for (const name of ["VouchersShardUnserved", "VouchersProcessDown"])
      expect(find(name, { processes: null })).toBeNull();
  });

  it("a shard without a worker, or paused, is named, and other queues than that of redeems are amber", () => {
    expect(find("VouchersShardUnserved", { processes: [worker({ workerShards: [0] })] })).toMatchObject([
      { subject: "redeem 1/2" },
      { subject: "seal 1/2", severity: "amber" },
    ]);
    expect(find("VouchersQueuePaused", { queues: redeems({ paused: true }, "1/2") })).toMatchObject([
      { subject: "redeem 1/2" },
    ]);
    const sweep = [{ shard: SHARDS[0], queues: [backlog("sweep", "0/2", { paused: true })] }];
    expect(find("VouchersQueuePaused", { queues: sweep as Facts["queues"] })).toMatchObject([
      { subject: "sweep", severity: "amber" },
    ]);
  });

  it("an API process that alone cannot use a server is named, and not the server", () => {
    const problems = { postgres: "No answer from Postgres.", redis: null };
    const apis = [
      worker({ id: "a", role: "api", problem: "No answer from Postgres." }),
      worker({ id: "b", role: "api" }),
    ];
    expect(find("VouchersServerAway", { problems, processes: apis })).toMatchObject([
      { subject: "api 1 on host", what: "A process cannot serve requests: No answer from Postgres", severity: "amber" },
    ]);
    const all = apis.map((one) => ({ ...one, problem: "No answer from Postgres." }));
    expect(find("VouchersServerAway", { problems, processes: all })).toMatchObject([
      { subject: "Postgres", what: "No answer from Postgres" },
    ]);
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

it("outcomes are forgotten: the recent ones after two reports, and all after twelve", () => {
  const counts = new RedeemOutcomes();
  counts.answered();
  counts.unanswered();
  const both = outcomes(1, 1);
  const none = outcomes(0, 0);
  for (let reports = 0; reports <= 2; reports += 1) {
    expect(counts.read()).toEqual({ recent: both, minute: both });
    counts.advance();
  }
  expect(counts.read()).toEqual({ recent: none, minute: both });
  for (let reports = 3; reports <= 12; reports += 1) counts.advance();
  expect(counts.read()).toEqual({ recent: none, minute: none });
});

describe("who takes the place of a process that vanished", () => {
  const at = (second: number) => `2026-06-01T12:00:0${second}.000Z`;
  const lost = worker({ id: "lost", state: "gone", at: at(1) });
  const later = worker({ id: "later", since: at(2) });
  const successors = (all: ReportedProcess[], taken: string[] = []) => [...findSuccessors(all, new Set(taken))];

  it("a later process of the same kind takes the place of one that vanished, and of no other", () => {
    expect(successors([lost, later])).toEqual([["lost", "later"]]);
    expect(successors([lost, { ...lost, id: "lost too" }, later])).toEqual([["lost", "later"]]);
    expect(successors([lost, later], ["later"])).toEqual([]);
  });

  it.each<[string, Partial<ReportedProcess>]>([
    ["began before", { since: at(0) }],
    ["has ended", { state: "ended" }],
    ["is of another role", { role: "api" }],
    ["does not serve all of its queues", { queues: ["seal"] }],
    ["serves some shards only", { workerShards: [0] }],
  ])("a process does not take the place if it %s", (_, changes) => {
    expect(successors([lost, { ...later, ...changes }])).toEqual([]);
  });
});
