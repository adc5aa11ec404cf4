import { expect, it, vi } from "vitest";
import { openBulkhead } from "../../../src/core/callers/bulkhead.ts";
import type { CallerKind } from "../../../src/core/callers/caller-kinds.ts";
import { FairSlots } from "../../../src/platform/batching/fair-slots.ts";
import { shareFor } from "../../../src/platform/batching/share-for.ts";
import { makeGate } from "../../support/gate.ts";

it("a bulkhead refuses an organization with too many waiting calls, and delays no other organization", async () => {
  const bulkhead = byOrganization({ waitingMaxEach: 3 });
  const work = makeWork();
  const calls = ["a1", "a2", "a3", "a4", "a5"].map((name) => bulkhead({ organizationId: "a" }, work.named(name)));
  await expect(bulkhead({ organizationId: "a" }, work.named("a6"))).rejects.toMatchObject({ code: "overloaded" });
  calls.push(bulkhead({ organizationId: "b" }, work.named("b1")), bulkhead({ organizationId: "c" }, work.named("c1")));
  await settle();
  expect(work.begun).toEqual(["a1", "a2", "b1", "c1"]);
  for (const name of ["a1", "a2", "a3", "a4", "a5", "b1", "c1"]) work.end(name);
  await Promise.all(calls);
});

it("a bulkhead whose waiting calls are at the total maximum refuses only calls that would have to wait", async () => {
  const bulkhead = byOrganization({ connections: 2, waitingMax: 1 });
  const work = makeWork();
  const calls = [
    bulkhead({ organizationId: "a" }, work.named("a1")),
    bulkhead({ organizationId: "a" }, work.named("a2")),
  ];
  calls.push(bulkhead({ organizationId: "b" }, work.named("b1")));
  await expect(bulkhead({ organizationId: "c" }, work.named("c1"))).rejects.toMatchObject({ code: "overloaded" });
  expect(work.begun).toEqual(["a1", "b1"]);
  for (const name of ["a1", "a2", "b1"]) work.end(name);
  expect(await Promise.all(calls)).toEqual(["a1", "a2", "b1"]);
});

it("a bulkhead without shares per caller gives all connections to calls in order of arrival", async () => {
  const bulkhead = openBulkhead({ calls: "", connections: 2, share: "none", waitingMax: 1, waitingMaxEach: 1 });
  const work = makeWork();
  const calls = ["1", "2", "3"].map((name) => bulkhead({}, work.named(name)));
  await expect(bulkhead({}, work.named("4"))).rejects.toMatchObject({ code: "overloaded" });
  expect(work.begun).toEqual(["1", "2"]);
  for (const name of ["1", "2", "3"]) work.end(name);
  expect(await Promise.all(calls)).toEqual(["1", "2", "3"]);
});

it("FairSlots runs one call of each caller in turn, however many calls of each wait", async () => {
  const slots = new FairSlots(1);
  const work = makeWork();
  const run = (owner: string, name: string) => slots.run(owner, work.named(name));
  const runs = [run("a", "a1"), run("a", "a2"), run("a", "a3"), run("a", "a4"), run("b", "b1"), run("b", "b2")];
  runs.push(run("c", "c1"));
  for (const [at, name] of ["a1", "a2", "b1", "c1", "a3", "b2", "a4"].entries()) {
    await settle();
    expect(work.begun[at]).toBe(name);
    work.end(name);
  }
  await Promise.all(runs);
  expect(slots.waiting).toBe(0);
});

it("a bulkhead does not count a disconnected caller as waiting, and gives it no connection", async () => {
  const bulkhead = byOrganization({ connections: 1, waitingMax: 2 });
  const work = makeWork();
  const running = bulkhead({ organizationId: "a" }, work.named("a1"));
  const leaving = new AbortController();
  const left = bulkhead({ organizationId: "b", signal: leaving.signal }, work.named("b1"));
  const waiting = bulkhead({ organizationId: "c" }, work.named("c1"));
  leaving.abort();
  await expect(left).rejects.toThrow("the caller has left");
  const later = bulkhead({ organizationId: "d" }, work.named("d1"));
  await expect(bulkhead({ organizationId: "e", signal: leaving.signal }, work.named("e1"))).rejects.toThrow();
  for (const name of ["a1", "c1", "d1"]) work.end(name);
  expect(await Promise.all([running, waiting, later])).toEqual(["a1", "c1", "d1"]);
  expect(work.begun).toEqual(["a1", "c1", "d1"]);
});

it("a bulkhead refuses a call that waits too long for a connection, but no running call", async () => {
  const bulkhead = byOrganization({ connections: 1, waitingMax: 1 });
  const work = makeWork();
  const running = bulkhead({ organizationId: "a" }, work.named("a1"), { maxMs: 1 });
  const leaving = new AbortController();
  const late = { organizationId: "b", signal: leaving.signal };
  await expect(bulkhead(late, work.named("b1"), { maxMs: 1 })).rejects.toMatchObject({ code: "overloaded" });
  const left = bulkhead(late, work.named("b2"), { maxMs: 60_000 });
  leaving.abort();
  await expect(left).rejects.toThrow("the caller has left");
  const waiting = bulkhead({ organizationId: "c" }, work.named("c1"), { maxMs: 60_000 });
  for (const name of ["a1", "c1"]) work.end(name);
  expect(await Promise.all([running, waiting])).toEqual(["a1", "c1"]);
  expect(work.begun).toEqual(["a1", "c1"]);
});

it("a call that continues a response may wait beyond the maximum, until its caller disconnects", async () => {
  const bulkhead = byOrganization({ connections: 1, waitingMax: 1, waitingMaxEach: 1 });
  const work = makeWork();
  const leaving = new AbortController();
  const running = [
    bulkhead({ organizationId: "a" }, work.named("a1")),
    bulkhead({ organizationId: "a" }, work.named("a2")),
  ];
  const continued = bulkhead({ organizationId: "a" }, work.named("a3"), { continues: true });
  const left = bulkhead({ organizationId: "a", signal: leaving.signal }, work.named("a4"), { continues: true });
  await expect(bulkhead({ organizationId: "a" }, work.named("a5"))).rejects.toMatchObject({ code: "overloaded" });
  leaving.abort();
  await expect(left).rejects.toThrow("the caller has left");
  for (const name of ["a1", "a2", "a3"]) work.end(name);
  expect(await Promise.all([...running, continued])).toEqual(["a1", "a2", "a3"]);
});

it("a caller that disconnects when it gets a connection runs no query and frees the connection", async () => {
  const slots = new FairSlots(1);
  const work = makeWork();
  const leaving = new AbortController();
  const first = slots.run("a", work.named("a1"));
  const left = slots.run("b", work.named("b1"), leaving.signal);
  const stopListening = leaving.signal.removeEventListener.bind(leaving.signal);
  vi.spyOn(leaving.signal, "removeEventListener").mockImplementation((...listener) => {
    stopListening(...listener);
    leaving.abort();
  });
  work.end("a1");
  await first;
  await expect(left).rejects.toThrow("the caller has left");
  expect([slots.used, slots.waiting]).toEqual([0, 0]);
  expect(work.begun).toEqual(["a1"]);
});

it("a shared read runs once for all concurrent callers, and later callers reuse its recent result", async () => {
  const { pass, open } = makeGate();
  const read = vi.fn(() => pass());
  const shared = shareFor(60_000, read);
  const asked = [shared(), shared()];
  open();
  await Promise.all(asked);
  await shared();
  expect(read).toHaveBeenCalledTimes(1);
  const failing = shareFor(60_000, vi.fn().mockRejectedValueOnce(new Error("broken")).mockResolvedValueOnce("mended"));
  await expect(failing()).rejects.toThrow("broken");
  expect(await failing()).toBe("mended");
});

/** Makes pieces of work that record their start and end when the test says. */
function makeWork() {
  const begun: string[] = [];
  const gates = new Map<string, ReturnType<typeof makeGate>>();
  return {
    begun,
    /** Makes work that records its name, and ends when the test says. */
    named: (name: string) => {
      gates.set(name, makeGate());
      return async () => {
        begun.push(name);
        await gates.get(name)?.pass();
        return name;
      };
    },
    end: (name: string) => gates.get(name)?.open(),
  };
}

/** Waits some turns of the event loop, so that all work ends that does not wait for the test. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

const byOrganization = (more: Partial<CallerKind<"organization">> = {}) =>
  openBulkhead({
    calls: "calls",
    connections: 4,
    share: "organization",
    waitingMax: 100,
    waitingMaxEach: 50,
    ...more,
  } as CallerKind<"organization">);
