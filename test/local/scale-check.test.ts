import { expect, it } from "vitest";
import { findLimit, type Part, partsOf, type RecordedUse, showScale } from "../../src/local/scale-check.ts";

it.each([
  ["API", parts(0.97, 0.9, 0.2, 0.4), /^The API is the limit now\./m],
  ["worker", parts(0.5, 0.95, 0.2, 0.9), /^The workers are the limit now\./m],
  ["Redis", parts(0.6, 0.3, 0.99, null), /^Redis is the limit now\./m],
  ["Postgres", parts(0.3, 0.3, 0.1, 1), /^Postgres is the limit now\./m],
  [null, parts(0.6, 0.69, 0.1, 0.5), /^No part is at its limit\./m],
])("scale-check names the busiest part as the limit only if it is rarely idle: %s", (limit, measured, sentence) => {
  const load = { seconds: 10, redemptions: 5_000, refusals: {}, latencyMs: { p50: 1, p99: 2 }, isCut: false };
  const scale = { ...load, organization: "org_1", callers: 64, parts: measured, machine: null };
  expect(findLimit(measured)).toBe(limit);
  expect(showScale(scale, false)).toMatch(sentence);
  expect(JSON.parse(showScale(scale, true))).toMatchObject({ limit, redemptionsPerSecond: 500, machine: null });
});

it("scale-check reports a rate limit that refused calls, and says if the machine uses all its cores", () => {
  const load = { seconds: 10, redemptions: 5_000, refusals: {}, latencyMs: { p50: 1, p99: 2 }, isCut: false };
  const scale = { ...load, organization: "org_1", callers: 64, parts: parts(0.5, 0.5, 0.1, 0.1), machine: 0.99 };
  expect(showScale(scale, false)).toMatch(/All cores of this machine are in use/);
  expect(showScale(scale, false)).not.toMatch(/No part is at its limit/);
  const refused = { ...scale, refusals: { rate_limited: 3 } };
  expect(showScale(refused, false)).toMatch(/^RATE_LIMIT_RPS is the limit now/m);
});

it("partsOf returns the busiest running API and the busiest running worker for redeems", () => {
  const process = (role: string, busy: number, more: Partial<RecordedUse> = {}): RecordedUse => ({
    role,
    queues: role === "worker" ? ["redeem"] : [],
    isUp: true,
    busy,
    ...more,
  });
  const processes = [
    ...[process("api", 0.2), process("api", 0.9), process("api", 1, { isUp: false })],
    ...[process("worker", 0.4), process("worker", 0.3), process("worker", 1, { queues: ["webhook"] })],
  ];
  expect(partsOf(processes)).toEqual([
    { name: "API", busy: 0.9, processes: 2 },
    { name: "worker", busy: 0.4, processes: 2 },
  ]);
  expect(partsOf([])).toEqual([
    { name: "API", busy: null, processes: 0 },
    { name: "worker", busy: null, processes: 0 },
  ]);
});

/** Makes parts (processes and servers) that are busy for these shares of the time. */
function parts(api: number, worker: number, redis: number, postgres: number | null): Part[] {
  const busy = { API: api, worker, Redis: redis, Postgres: postgres };
  return (["API", "worker", "Redis", "Postgres"] as const).map((name) => ({ name, busy: busy[name], processes: 1 }));
}
