import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { EVENT_CODES, type EventType, verifyChain } from "../../../src/core/chain/chain.ts";
import { verifyServedChain } from "../../support/independent-verifier.ts";
import {
  type ChainFault,
  renderVectors,
  VECTORS_FILE,
  type VectorChain,
  type VectorEvent,
  type Vectors,
} from "../../support/write-vectors.ts";

const PUBLISHED = readFileSync(VECTORS_FILE, "utf8");
const { chains, broken, hostile, findings }: Vectors = JSON.parse(PUBLISHED);

it("generating the published test vectors of chains again yields the same bytes", () => {
  expect(renderVectors()).toBe(PUBLISHED);
});

it("the published test vectors have valid chains, and a broken chain for each kind of fault", () => {
  const names = [...chains, ...broken].map((chain) => chain.name);
  expect(new Set(names).size).toBe(names.length);
  expect(new Set(broken.map((chain) => chain.expected.finding))).toEqual(new Set(Object.keys(findings)));
  const payloads = chains.flatMap((chain) => chain.events.map((event) => event.payload ?? "")).join();
  for (const inside of ["🎟️", "乾杯", '\\"Käse', "\\\\", "\\n", "\\t", "e\u0301", "\u2028"]) {
    expect(payloads).toContain(inside);
  }
  for (const price of ["priceUsd:0", "priceUsd:19.9", "retailPriceUsd:1000", "retailPriceUsd:9999999999.99"]) {
    expect(payloads.replaceAll('"', "")).toMatch(new RegExp(`\\b${price}[,}]`));
  }
});

it("each event of the published test vectors repeats the values of its payload", () => {
  for (const chain of chains) {
    for (const { payload, sealStatus, recordHash, ...beside } of chain.events) {
      if (sealStatus === "Pending") continue;
      expect(recordHash).toMatch(/^[0-9a-f]{64}$/);
      if (beside.erasedBy !== undefined) continue;
      const { data, v, entityType, entityId, ...said } = JSON.parse(payload ?? "");
      const { erasedSequences } = data;
      expect({ ...said, ...(erasedSequences && { erasedSequences }) }).toEqual(beside);
      expect({ v, entityType, entityId }).toEqual({ v: 1, entityType: chain.entityType, entityId: chain.entityId });
      expect(data.nonce).toMatch(/^[0-9a-f]{32}$/);
    }
  }
});

it.each(
  chains,
)("the service's and an independent verifier accept the valid chain of the test vectors: $name", (chain) => {
  expect(verifyServedChain(chain.events, chain.entityId)).toBeNull();
  expect(verifyOwn(chain)).toBeNull();
});

/** The messages of the service's verifier and of the independent verifier for each kind of fault. */
const OWN_WORDS: Record<ChainFault, RegExp> = {
  sequence: /^event \d+ is missing$/,
  sealStatus: /^(sealed after a pending event|pending, although)/,
  recordHash: /^recordHash is not/,
  previousHash: /^(previousHash is not|the payload's previousHash)/,
  eventType: /^the payload's eventType is not/,
  entityId: /^the payload's entityId is not/,
  erased: /^(no later event says|it erases an event)/,
};

const INDEPENDENT_WORDS: Record<ChainFault, string> = {
  sequence: "^position # holds sequence ",
  sealStatus: "^event # is (sealed after a pending one|pending and has)",
  recordHash: "^event # hashes to ",
  previousHash: "^event # (names another predecessor|does not follow)",
  eventType: "^event # has another type",
  entityId: "^event # is of another voucher",
  erased: "^event # (lost its payload|erases what)",
};

it.each(
  broken,
)("the service's and an independent verifier find the fault in the test vectors' chain: $name", (chain) => {
  const { sequence, finding } = chain.expected;
  const words = INDEPENDENT_WORDS[finding].replace("#", String(sequence));
  expect(verifyServedChain(chain.events, chain.entityId)).toMatch(new RegExp(words));
  expect(verifyOwn(chain)).toEqual({ sequence, problem: expect.stringMatching(OWN_WORDS[finding]) });
});

/** A member that an event lacks counts as null. */
const NOTHING = {
  code: null,
  recordHash: null,
  previousHash: null,
  payload: null,
  occurredAt: null,
  actorConnectedId: null,
  actorIsEmployee: null,
};

/** Whether the table of events can store the event: the types are right, and code and time have the served form. */
function isRow({ sequence, eventType, code, occurredAt, ...event }: VectorEvent): boolean {
  const texts = [event.recordHash, event.previousHash, event.payload, event.actorConnectedId];
  return (
    Number.isInteger(sequence) &&
    typeof eventType === "string" &&
    texts.every((text) => text === null || typeof text === "string") &&
    (EVENT_CODES[eventType as EventType] ?? code) === code &&
    new Date(occurredAt).toJSON() === occurredAt
  );
}

it("the service's and an independent verifier give the published result for hostile histories", () => {
  const wrong: object[] = [];
  let rows = 0;
  for (const { name, history, verdict } of hostile) {
    const { entityId = "none", events: served } = JSON.parse(history);
    const events: VectorEvent[] = served.map((event: unknown) => ({ ...NOTHING, ...Object(event) }));
    const at = (problem: string | null) => Number(/\d+/.exec(problem ?? "0"));
    const expected = verdict.intact ? 0 : verdict.sequence;
    const found = { independent: at(verifyServedChain(events, entityId)), own: expected };
    if (events.every(isRow)) {
      rows += 1;
      found.own = verifyOwn({ name, entityType: "VoucherInstance", entityId, events })?.sequence ?? 0;
    }
    if (found.independent !== expected || found.own !== expected) wrong.push({ name, expected, ...found });
  }
  expect(wrong).toEqual([]);
  expect(rows).toBeGreaterThan(hostile.length / 2);
});

/** Verifies rows with these events, and a chain head that matches the last event, by the service's verifier. */
function verifyOwn({ entityId, events }: VectorChain) {
  const last = events.findLast((event) => event.sealStatus !== "Pending");
  const head = {
    lastSequence: events.length,
    sealedSequence: last?.sequence ?? 0,
    sealedHash: last?.recordHash ?? null,
  };
  const rows = events.map((event) => ({ ...event, voucherId: entityId, occurredAt: new Date(event.occurredAt) }));
  return verifyChain(entityId, head, rows);
}
