import { globSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { ServiceProcess } from "../../src/core/processes/db/processes.ts";
import { busiestKeysIn, limitedKeysIn } from "../../src/core/processes/minute-counts.ts";
import { each } from "../../src/open/api-parts.ts";
import { CONFIG_PARTS } from "../../src/open/config-parts.ts";
import { listShards } from "../../src/platform/queues/shards.ts";
import type { Stock } from "../../src/watch/db/activity.ts";
import type { RecordedFault } from "../../src/watch/db/faults.ts";
import type { Facts } from "../../src/watch/facts.ts";
import { allFaults } from "../../src/watch/faults.ts";
import { countMissingStandbys } from "../../src/watch/find-cause.ts";

const FAULTS = allFaults(each("faults"));
const read = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8");
const alerts = Array.from(
  read("observability/prometheus-rules.yml").matchAll(/- alert: (\w+)\n[\s\S]*?severity: (\w+)/g),
  ([, name = "", severity = ""]) => ({ name, severity }),
);

it("the overview has at most 15 kinds of faults", () => {
  expect(FAULTS.length).toBeLessThanOrEqual(15);
});

it("the runbook has one entry for each fault of the overview and each alert of Prometheus", () => {
  const pages = globSync("docs/runbook/*.md").map((file) => readFileSync(file, "utf8"));
  const entries = Array.from(pages.join("\n").matchAll(/^## (\w+)$/gm), ([, name]) => name);
  const names = new Set([...FAULTS, ...alerts].map(({ name }) => name));
  expect(entries.toSorted()).toEqual([...names].toSorted());
});

it("a fault has the same severity in the overview and in Prometheus", () => {
  const severities = { red: "critical", amber: "warning", grey: "none" };
  const different = FAULTS.filter(({ name, severity }) => {
    const own = alerts.filter((alert) => alert.name === name);
    return own.length > 0 && !own.some((alert) => alert.severity === severities[severity]);
  });
  // Redeems that wait for two seconds are an urgent fault. In other queues, jobs that wait for a minute are not.
  expect(different.map(({ name }) => name)).toEqual(["VouchersQueueBacklog"]);
});

const NOW = new Date("2026-06-01T12:00:00Z");
const EARLIER = new Date("2026-06-01T11:00:00Z");
const SHARDS = listShards("deployment", 2);
const SILENT = { silentMs: 15_000, shards: [15_000, 15_500], silentShards: [], latencyMs: { p50: null, p99: null } };

const process = (changes: Partial<ServiceProcess> = {}): ServiceProcess => ({
  id: "w",
  role: "worker",
  host: "host",
  pid: 1,
  version: "1",
  queues: ["redeem", "seal", "sweep"],
  since: EARLIER,
  seenAt: NOW,
  busy: 0,
  problem: null,
  canaryAt: null,
  isUp: true,
  canaryAgeMs: null,
  ...changes,
});
/** Another API process. */
const api = (changes: Partial<ServiceProcess> = {}) =>
  process({ id: "b", role: "api", pid: 2, queues: [], canaryAgeMs: 3_000, ...changes });

/** Makes the backlogs of all queues, with changes to one of them in all shards or in one. */
const backlogs = (of: string, changes: object, only?: string): NonNullable<Facts["queues"]> =>
  SHARDS.map((shard) => ({
    shard,
    queues: CONFIG_PARTS.queues.map(({ name: queue }) => ({
      queue,
      shard: shard.name,
      waiting: 0,
      active: 0,
      failed: 0,
      oldestWaitingMs: 0,
      paused: false,
      ...(queue === of && (only ?? shard.name) === shard.name && changes),
    })),
  }));

const DATABASE: NonNullable<Facts["database"]> = {
  server: {
    version: "17",
    isStandby: false,
    standbyNames: "FIRST 1 (a)",
    standbys: ["a"],
    lagMs: null,
    connections: 1,
    connectionsMax: 100,
    sizeBytes: 1,
  },
  recorded: [],
  brokenChains: [],
  usedCaps: [],
  stock: [],
  ofWings: {},
};
const HEALTHY: Facts = {
  now: NOW,
  problems: { postgres: null, redis: null },
  refusing: [],
  canary: { ...SILENT, silentMs: 1_000, shards: [1_000, 3_000] },
  processes: [api({ id: "a" }), api(), process()],
  self: { id: "a", name: "api 1 on host" },
  unready: null,
  shards: SHARDS,
  clockAheadMs: 0,
  settings: CONFIG_PARTS.queues,
  queues: backlogs("", {}),
  database: DATABASE,
  limitedKeys: [],
  tokenReports: [],
};
/** The facts that change when nothing is redeemed. */
const OUTAGE: Partial<Facts> = { canary: SILENT, processes: [process()] };

const find = (name: string, changes: Partial<Facts>) =>
  FAULTS.find((one) => one.name === name)?.find({ ...HEALTHY, ...changes });

it("a healthy deployment has no fault", () => {
  expect(FAULTS.flatMap(({ find }) => find(HEALTHY) ?? [{ what: "unknown" }])).toEqual([]);
});

it.each<[cause: string, changes: Partial<Facts>]>([
  ["no answer from Postgres", { problems: { postgres: "No answer from Postgres.", redis: "No answer from Redis." } }],
  ["a synchronous standby is away", { database: { ...DATABASE, server: { ...DATABASE.server, standbys: [] } } }],
  ["Redis refuses writes: OOM", { problems: { postgres: null, redis: "Redis refuses writes: OOM." } }],
  ["the queue redeem is paused", { queues: backlogs("redeem", { paused: true, waiting: 1 }), processes: [] }],
  ["no worker runs for the queue redeem", { processes: [process({ isUp: false }), process({ queues: ["seal"] })] }],
  ["workers do not finish the redeems that they have begun", { queues: backlogs("redeem", { active: 1, waiting: 9 }) }],
  ["redeems wait, and no worker takes them", { queues: backlogs("redeem", { waiting: 1 }) }],
  ["no worker answers", {}],
  ["no worker answers", { processes: null, queues: null, database: null }],
])("a fault reports that nothing is redeemed while no canary job is answered: %s", (cause, changes) => {
  const since = new Date(NOW.getTime() - 15_000);
  const found = { what: `Nothing is redeemed: ${cause}`, subject: "All organizations", since };
  expect(find("VouchersNothingRedeemed", { ...OUTAGE, ...changes })).toEqual([found]);
  // The fault is reported once.
  expect(find("VouchersServerAway", { ...OUTAGE, ...changes, unready: "No answer from Redis." })).toEqual([]);
});

it.each<[why: string, changes: Partial<Facts>]>([
  ["its silence is short", { canary: { ...SILENT, silentMs: 14_500 } }],
  ["a canary of another process was answered", { processes: [api({ canaryAgeMs: 14_000 })] }],
  ["one of a process that has ended since was answered", { processes: [api({ canaryAgeMs: 14_000, isUp: false })] }],
])("no fault reports that nothing is redeemed if %s", (_why, changes) => {
  expect(find("VouchersNothingRedeemed", { ...OUTAGE, ...changes })).toEqual([]);
});

it("the fault of unready API processes names the processes, and is red once half of all are unready", () => {
  const unready = { unready: "No worker answers it." };
  const name = { subject: "api 1 on host", what: "An API process cannot serve requests: No worker answers it" };
  const severities = (others: ServiceProcess[], own: Partial<Facts> = unready) =>
    find("VouchersServerAway", { ...own, processes: others })?.map(({ severity }) => severity);
  expect(find("VouchersServerAway", { ...unready, processes: [api(), api({ id: "c" })] })).toEqual([
    { ...name, severity: "amber" },
  ]);
  expect(severities([api()])).toEqual(["red"]);
  expect(severities([api({ problem: "x" }), api({ id: "c" })])).toEqual(["red", "red"]);
  expect(severities([api({ problem: "x" })], {})).toEqual(["red"]);
  // Ended processes and workers do not count for this fault.
  expect(severities([api({ problem: "x", isUp: false }), process({ problem: "x" })], {})).toEqual([]);
  // Without Postgres, the other processes are unknown.
  expect(find("VouchersServerAway", { ...unready, processes: null })).toMatchObject([{ severity: "red" }]);
});

it("a shard that redeems nothing while others do is a fault that names the shard and the cause", () => {
  const canary = { ...SILENT, silentMs: 1_000, shards: [1_000, 20_000], silentShards: [1] };
  const what = (changes: Partial<Facts>) => find("VouchersShardAway", { canary, ...changes })?.[0]?.what;
  const start = "Nothing is redeemed in shard 1/2: ";
  const [first, second] = SHARDS as [(typeof SHARDS)[0], (typeof SHARDS)[0]];
  expect(what({ refusing: [{ shard: second, refusal: null }] })).toBe(`${start}a Redis server does not answer`);
  expect(what({ refusing: [{ shard: second, refusal: "OOM." }] })).toBe(`${start}a Redis server refuses writes: OOM`);
  expect(what({ refusing: [{ shard: first, refusal: "OOM." }] })).toBe(`${start}no worker answers`);
  expect(what({ queues: backlogs("redeem", { paused: true }, "1/2") })).toBe(
    `${start}the queue redeem is paused in shard 1/2`,
  );
  expect(what({ queues: backlogs("redeem", { waiting: 1 }, "1/2") })).toBe(
    `${start}redeems wait, and no worker takes them`,
  );
  expect(find("VouchersShardAway", { canary })).toMatchObject([{ subject: "Redis", since: new Date(+NOW - 20_000) }]);
});

it("the fault of a paused queue is red for redeems, and stays while Redis is unreachable", () => {
  expect(find("VouchersQueuePaused", { queues: backlogs("redeem", { paused: true }, "1/2") })).toEqual([
    { subject: "redeem", what: "The queue redeem is paused in shard 1/2", page: ["queues", "redeem"] },
  ]);
  expect(find("VouchersQueuePaused", { queues: backlogs("sweep", { paused: true }) })).toMatchObject([
    { subject: "sweep", severity: "amber" },
  ]);
  const hidden = { queues: backlogs("", {}).map((one) => ({ ...one, queues: null })) };
  for (const name of ["VouchersQueuePaused", "VouchersQueueBacklog", "VouchersJobsFail"]) {
    expect(find(name, hidden), name).toBeNull();
    expect(find(name, { queues: null }), name).toBeNull();
  }
});

it("jobs of a queue that wait more than a minute are a fault, which names a missing worker", () => {
  const wait = (queue: string, oldestWaitingMs = 60_001) => backlogs(queue, { waiting: 1, oldestWaitingMs });
  const what = "Jobs of the queue seal wait for more than a minute";
  expect(find("VouchersQueueBacklog", { queues: wait("seal", 60_000) })).toEqual([]);
  expect(find("VouchersQueueBacklog", { queues: wait("seal") })).toMatchObject([{ what, subject: "seal" }]);
  expect(find("VouchersQueueBacklog", { queues: wait("seal"), processes: [] })).toMatchObject([
    { what: `${what}, and no worker runs for it` },
  ]);
  // Without its worker, the log's queue is not in use.
  expect(find("VouchersQueueBacklog", { queues: wait("log") })).toEqual([]);
  expect(find("VouchersQueueBacklog", { queues: wait("log"), processes: [process({ queues: ["log"] })] })).toHaveLength(
    1,
  );
});

it("the fault of failed jobs has their number over all shards", () => {
  expect(find("VouchersJobsFail", { queues: backlogs("redeem", { failed: 1 }) })).toEqual([
    { subject: "redeem", what: "2 jobs have failed", page: ["queues"] },
  ]);
  expect(find("VouchersJobsFail", { queues: backlogs("seal", { failed: 1 }, "0/2") })).toMatchObject([
    { what: "1 job has failed" },
  ]);
});

it("a database clock that has jumped ahead is a fault", () => {
  const what = "The database's clock has jumped 3600 s ahead";
  expect(find("VouchersClockAhead", { clockAheadMs: 3_600_000 })).toEqual([{ what, subject: "Postgres" }]);
});

it("a key at its rate limit for a minute is an amber fault, and is not judged without Redis", () => {
  const limitedKeys = [{ organizationId: "org_1", keyId: "key_1", limited: 5_000 }];
  const page = ["organizations", "org_1", "calls"];
  expect(find("KeyMeetsLimit", { limitedKeys })).toMatchObject([{ subject: "key_1", page }]);
  expect(find("KeyMeetsLimit", { limitedKeys: null })).toBeNull();
});

it("a key at both its rate limit and its daily limit is one fault, whose text names the daily limit", () => {
  const limitedKeys = [{ organizationId: "org_1", keyId: "key_1", limited: 5_000 }];
  const usedCaps = [{ keyId: "key_1", organizationId: "org_1", isReached: false }];
  const what = "A key has used 80 % of its daily limit";
  const found = find("KeyMeetsLimit", { limitedKeys, database: { ...DATABASE, usedCaps } });
  expect(found).toEqual([{ what, subject: "key_1", page: ["organizations", "org_1"] }]);
});

it("token keys that cannot be fetched are amber, refused tokens grey, and neither is judged without Redis", () => {
  const report = (variable: "AUTH_JWKS_URL" | "OPS_ISSUER") => ({ variable, what: `about ${variable}` });
  const tokenReports = [report("AUTH_JWKS_URL"), report("OPS_ISSUER")];
  expect(find("VouchersSignInsFail", { tokenReports })).toEqual([
    { what: "about AUTH_JWKS_URL", subject: "AUTH_JWKS_URL", severity: "amber" },
    { what: "about OPS_ISSUER", subject: "OPS_ISSUER", severity: "grey" },
  ]);
  expect(find("VouchersSignInsFail", { tokenReports: null })).toBeNull();
});

it("a key counts as at its rate limit if calls are refused in each second of a full minute", () => {
  const [flood, few] = [{ "key limited org_1 key_1": "60" }, { "key limited org_1 key_1": "1" }];
  const key = [{ organizationId: "org_1", keyId: "key_1", limited: 60 }];
  expect([limitedKeysIn([few, flood, {}]), limitedKeysIn([{}, flood, few])]).toEqual([key, key]);
  for (const minutes of [
    [{}, flood, {}],
    [few, few, few],
    [flood, {}, flood],
  ])
    expect(limitedKeysIn(minutes)).toEqual([]);
  const counts: Record<string, string>[] = [
    { ...flood, "key calls org_1 key_1": "90" },
    { "key calls org_2 key_2": "7" },
  ];
  const now = new Date("2026-11-29T12:00:00Z");
  expect(busiestKeysIn(counts, now)).toEqual([
    { organizationId: "org_1", keyId: "key_1", calls: 90, limited: 60 },
    { organizationId: "org_2", keyId: "key_2", calls: 7, limited: 0 },
  ]);
});

const OF_WINGS = ["VouchersLogRefused", "VouchersLogWitness", "VouchersWebhooksFail"];

it.each<[name: string, changes: Partial<typeof DATABASE>, found: object]>([
  [
    "VouchersChainBroken",
    { brokenChains: [{ voucherId: "vch_1", since: EARLIER }] },
    { subject: "vch_1", since: EARLIER, page: ["vouchers", "vch_1"] },
  ],
  [
    "KeyMeetsLimit",
    { usedCaps: [{ keyId: "key_1", organizationId: "org_1", isReached: true }] },
    { what: "A key has reached its daily limit", subject: "key_1", page: ["organizations", "org_1"] },
  ],
  [
    "AlertsFail",
    {
      recorded: [
        { failingSince: NOW },
        { failingSince: null },
        { failingSince: EARLIER },
      ] as unknown as RecordedFault[],
    },
    { subject: "ALERT_URL", since: EARLIER },
  ],
  ...OF_WINGS.map((name): [string, Partial<typeof DATABASE>, object] => {
    const found = { what: "x", subject: "y" };
    return [name, { ofWings: { [name]: [found] } }, found];
  }),
  [
    "BatchEnds",
    { stock: [{ left: 0, batchId: "bat_1", brand: "Shop", product: "Cup" } as Stock] },
    { what: "A batch is sold out", subject: "Shop: Cup", page: ["batches", "bat_1"] },
  ],
])("the fault %s is found in the database, and is not judged while Postgres is unreachable", (name, changes, found) => {
  expect(find(name, { database: { ...DATABASE, ...changes } })).toEqual([expect.objectContaining(found)]);
  expect(find(name, { database: null })).toBeNull();
});

it.each<[names: string, connected: string[], missing: number]>([
  ["", [], 0],
  ["standby", [], 1],
  ["a, b", ["b"], 0],
  ["ANY 2 (a, b, c)", ["c"], 1],
  ["first 1 (a)", [], 1],
  ["first 1 (a)", ["A"], 0],
  ["3 (a, b, c)", ["a", "b", "c"], 0],
  // The connected standby is asynchronous.
  ["FIRST 1 (a)", ["reports"], 1],
  ["a", ["reports"], 1],
  ['2 (a, "the ""b""")', ["a", 'the "b"', "reports"], 0],
  ['2 (a, "the ""b""")', ["a", "the", "reports"], 1],
  ["ANY 1 (*)", ["reports"], 0],
  ["*", [], 1],
])("of the named standbys %j, with %j connected, %i are missing", (standbyNames, standbys, missing) => {
  expect(countMissingStandbys({ standbyNames, standbys })).toBe(missing);
});
