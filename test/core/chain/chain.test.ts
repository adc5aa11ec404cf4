import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import {
  ANCHOR_NAMESPACE,
  EVENT_CODES,
  type EventContent,
  type EventType,
  erasedSequencesOf,
  GENESIS_HASH,
  nextEvent,
  type StoredEvent,
  sealEvent,
  verifyChain,
} from "../../../src/core/chain/chain.ts";
import { type ChainHead, ENTITY_TYPE } from "../../../src/core/voucher/voucher.ts";

const VOUCHER = "vch_01jz3v8q4xe7j9t2m5n6p8r0s1";
const NONCE = "000102030405060708090a0b0c0d0e0f";

it("the sealed form of an event is the documented text, with its SHA-256 and previousHash", () => {
  const content = event(2, {
    eventType: "voucher.instance.redeemed",
    occurredAt: new Date("2027-03-01T12:34:56.007Z"),
    actorConnectedId: "key_01jz3v8q4x",
    data: { priceUsd: 19.9, ticket: null, nonce: NONCE, note: 'Käse "1€" \u{1f39f}' },
  });
  const previousHash = "ab".repeat(32);
  const seal = sealEvent(content, previousHash);
  expect(seal.payload).toBe(
    '{"actorConnectedId":"key_01jz3v8q4x","actorIsEmployee":null,"code":"VCH004",' +
      `"data":{"nonce":"${NONCE}","note":"Käse \\"1€\\" 🎟","priceUsd":19.9,"ticket":null},` +
      `"entityId":"${VOUCHER}","entityType":"VoucherInstance","eventType":"voucher.instance.redeemed",` +
      `"occurredAt":"2027-03-01T12:34:56.007Z","previousHash":"${previousHash}","sequence":2,"v":1}`,
  );
  // Computed once with sha256sum.
  expect(seal.recordHash).toBe("97332a3e3f3353810d68ffa7766bc3d7155cec0b9ea08106bcb0b0db01d0b931");
  expect(seal.recordHash).toBe(sha256(seal.payload));
  expect(seal.previousHash).toBe(previousHash);
});

it("the sealed form of an event contains the code of its type", () => {
  const codes = Object.keys(EVENT_CODES).map((eventType) => {
    const { payload } = sealEvent(event(1, { eventType: eventType as EventType }), GENESIS_HASH);
    return [eventType, JSON.parse(payload).code];
  });
  expect(Object.fromEntries(codes)).toEqual({
    "voucher.instance.issued": "VCH001",
    "voucher.instance.claimed": "VCH002",
    "voucher.instance.bought": "VCH003",
    "voucher.instance.redeemed": "VCH004",
    "voucher.instance.voided": "VCH005",
    "voucher.instance.expired": "VCH006",
    "voucher.instance.erased": "VCH007",
    "voucher.instance.extended": "VCH008",
    "voucher.instance.suspended": "VCH009",
    "voucher.instance.resumed": "VCH010",
  });
});

it("the first event of a chain has a previousHash of 64 zeros", () => {
  expect(GENESIS_HASH).toBe("0000000000000000000000000000000000000000000000000000000000000000");
  expect(ENTITY_TYPE).toBe("VoucherInstance");
  expect(ANCHOR_NAMESPACE).toBe("VoucherInstance:events");
});

it("the sealed form of an event omits undefined fields and keeps null and empty fields", () => {
  const data = { nonce: NONCE, note: undefined, ticket: null, reason: "" };
  expect(sealEvent(event(1, { data }), GENESIS_HASH).payload).toContain(
    `"data":{"nonce":"${NONCE}","reason":"","ticket":null}`,
  );
});

it("any change of a field or of the previous hash changes the hash of an event", () => {
  const changes: Partial<EventContent>[] = [
    {},
    { sequence: 2 },
    { voucherId: `${VOUCHER}x` },
    { eventType: "voucher.instance.voided" },
    { occurredAt: event(2).occurredAt },
    { actorConnectedId: "key_1" },
    { actorIsEmployee: false },
    { data: { nonce: "1".repeat(32) } },
  ];
  const seals = changes.map((change) => sealEvent(event(1, change), GENESIS_HASH));
  const hashes = [...seals, sealEvent(event(1), "1".repeat(64))].map((seal) => seal.recordHash);
  expect(new Set(hashes).size).toBe(9);
});

it.each<[name: string, value: unknown]>([
  ["a lone high surrogate", "\ud800"],
  ["a lone low surrogate in a key", { "\udc00 behind": 1 }],
  ["NaN", Number.NaN],
  ["Infinity", { inside: [Number.POSITIVE_INFINITY] }],
])("an event with %s cannot be sealed", (_name, value) => {
  expect(() => canonical(value)).toThrow();
});

interface Chain {
  head: ChainHead;
  events: StoredEvent[];
}

const CONTENTS: EventContent[] = [
  event(1, { data: { nonce: NONCE, voucherCode: "7Q4K-9MZX-2HTB-W8RC", priceUsd: 19.9 } }),
  event(2, {
    eventType: "voucher.instance.claimed",
    actorConnectedId: "user-1",
    actorIsEmployee: true,
    data: { nonce: NONCE },
  }),
  event(3, {
    eventType: "voucher.instance.redeemed",
    actorConnectedId: "key_1",
    data: { nonce: NONCE, note: 'Tisch 4 / "Käse" \u{1f39f}', retailPriceUsd: 1000 },
  }),
];

const PENDING = { sealStatus: "Pending", previousHash: null, recordHash: null, payload: null } as const;

/** Makes a valid chain of these events. The last `pending` events are not sealed. */
function makeChain(contents: readonly EventContent[] = CONTENTS, pending = 0): Chain {
  const sealedSequence = contents.length - pending;
  let previousHash = GENESIS_HASH;
  const events = contents.map(({ data, ...content }, index): StoredEvent => {
    if (index >= sealedSequence) return { ...content, ...PENDING };
    const seal = sealEvent({ ...content, data }, previousHash);
    previousHash = seal.recordHash;
    return { ...content, sealStatus: "Sealed", ...seal };
  });
  const sealedHash = sealedSequence === 0 ? null : previousHash;
  return { events, head: { lastSequence: contents.length, sealedSequence, sealedHash } };
}

const { head: HEAD, events: ROWS } = makeChain();
const [FIRST, SECOND, THIRD] = ROWS as [StoredEvent, StoredEvent, StoredEvent];

/** Makes a valid chain, then changes the row with this sequence. */
function withRow(sequence: number, changes: Partial<StoredEvent>): Chain {
  return { head: HEAD, events: ROWS.map((row) => (row.sequence === sequence ? { ...row, ...changes } : row)) };
}

/**
 * Like {@link withRow}, with a changed payload and its recordHash. If the event is the last one, the chain's head has
 * this hash too.
 */
function withPayload(sequence: number, change: (payload: string) => string, row: Partial<StoredEvent> = {}): Chain {
  const payload = change(ROWS[sequence - 1]?.payload ?? "");
  const recordHash = sha256(payload);
  const { head, events } = withRow(sequence, { payload, recordHash, ...row });
  return { head: sequence === ROWS.length ? { ...head, sealedHash: recordHash } : head, events };
}

function verify({ head, events }: Chain) {
  return verifyChain(VOUCHER, head, events);
}

it("verifyChain accepts valid chains that end in any number of Pending events", () => {
  for (let length = 0; length <= CONTENTS.length; length++) {
    for (let pending = 0; pending <= length; pending++) {
      const chain = makeChain(CONTENTS.slice(0, length), pending);
      expect(verify(chain), `${length} events, ${pending} pending`).toBeNull();
    }
  }
});

it.each<[what: string, change: (row: StoredEvent) => Partial<StoredEvent>, problem: RegExp]>([
  ["its sequence", () => ({ sequence: 9 }), /event \d is missing/],
  ["its eventType", () => ({ eventType: "voucher.instance.voided" }), /eventType/],
  ["its time, by a millisecond", (row) => ({ occurredAt: new Date(row.occurredAt.getTime() + 1) }), /occurredAt/],
  [
    "its time, to Postgres' infinity",
    () => ({ occurredAt: Number.POSITIVE_INFINITY as unknown as Date }),
    /occurredAt/,
  ],
  ["its actor", () => ({ actorConnectedId: "key_2" }), /actorConnectedId/],
  ["whether there is an actor", (row) => ({ actorConnectedId: row.actorConnectedId ? null : "" }), /actorConnectedId/],
  [
    "its actorIsEmployee",
    (row) => ({ actorIsEmployee: row.actorIsEmployee === null ? false : null }),
    /actorIsEmployee/,
  ],
  ["its previousHash", () => ({ previousHash: "f".repeat(64) }), /previousHash/],
  ["its recordHash", () => ({ recordHash: "f".repeat(64) }), /recordHash/],
  ["its recordHash, to upper case", (row) => ({ recordHash: (row.recordHash ?? "").toUpperCase() }), /recordHash/],
  ["its payload", (row) => ({ payload: (row.payload ?? "").replace(NONCE, NONCE.replace("0", "1")) }), /recordHash/],
  ["its payload, to nothing", () => ({ payload: null }), /payload was erased/],
])("verifyChain rejects a changed row: %s", (_what, change, problem) => {
  for (const row of ROWS) {
    const { sequence } = row;
    expect(verify(withRow(sequence, change(row)))).toEqual({ sequence, problem: expect.stringMatching(problem) });
  }
});

const relinked = sealEvent({ ...(CONTENTS[1] as EventContent), voucherId: "vch_other" }, FIRST.recordHash ?? "");
const moved = (row: StoredEvent, sequence: number) => ({ ...row, sequence });
const countOf = (n: number) => ({ ...HEAD, lastSequence: n, sealedSequence: n });
const half = makeChain(CONTENTS, 1);
const added = [...half.events, moved(half.events[2] as StoredEvent, 4)];
const LINK = /previousHash/;

it.each<[what: string, head: ChainHead, events: StoredEvent[], sequence: number, problem: RegExp]>([
  ["a removed event in the middle", HEAD, [FIRST, THIRD], 2, /^event 2 is missing$/],
  ["a removed first event, after which another is renumbered", countOf(1), [moved(SECOND, 1)], 1, LINK],
  ["swapped events", HEAD, [FIRST, THIRD, SECOND], 2, /^event 2 is missing$/],
  ["an event twice", countOf(4), [FIRST, SECOND, SECOND, THIRD], 3, /^event 3 is missing$/],
  ["a removed last event", HEAD, [FIRST, SECOND], 3, /^the voucher counts 3 events, 2 exist$/],
  ["a removed pending event", half.head, half.events.slice(0, -1), 3, /events, 2 exist$/],
  ["an added pending event", half.head, added, 3, /3 events, 4 exist$/],
  ["a removed seal", HEAD, [FIRST, { ...SECOND, ...PENDING }, THIRD], 3, /^sealed after a pending event$/],
  ["a removed last seal", HEAD, [FIRST, SECOND, { ...THIRD, ...PENDING }], 3, /3 sealed events, 2 exist/],
  ["the first of several problems", countOf(9), [{ ...FIRST, payload: "{}" }, THIRD], 1, /./],
  ["another voucher's event with a fitting link", countOf(2), [FIRST, { ...SECOND, ...relinked }], 2, /entityId/],
  ["a last sequence that is too high", { ...HEAD, lastSequence: 4 }, ROWS, 4, /4 events, 3 exist/],
  ["a last sequence that is too low", { ...HEAD, lastSequence: 2 }, ROWS, 2, /2 events, 3 exist/],
  ["a sealed sequence that is too high", { ...HEAD, sealedSequence: 4 }, ROWS, 4, /4 sealed events, 3 exist/],
  ["a sealed sequence that is too low", { ...HEAD, sealedSequence: 2 }, ROWS, 2, /2 sealed events, 3 exist/],
  ["a head with the hash of no event", { ...HEAD, sealedHash: "f".repeat(64) }, ROWS, 3, /sealed head/],
  ["a head without a hash", { ...HEAD, sealedHash: null }, ROWS, 3, /sealed head/],
])("verifyChain rejects %s", (_what, head, events, sequence, problem) => {
  expect(verify({ head, events })).toEqual({ sequence, problem: expect.stringMatching(problem) });
});

it("verifyChain rejects a chain that is stored under another voucher", () => {
  expect(verifyChain("vch_other", HEAD, ROWS)).toEqual({ sequence: 1, problem: expect.stringMatching(/entityId/) });
});

it("verifyChain rejects a voucher with a last sealed hash but without a sealed event", () => {
  const { head, events } = makeChain(CONTENTS, 3);
  expect(verify({ head: { ...head, sealedHash: "f".repeat(64) }, events })).toMatchObject({ sequence: 0 });
});

it("verifyChain cannot detect a missing last event if the voucher's last sequence and hash match the rest", () => {
  expect(verify({ head: { ...countOf(2), sealedHash: SECOND.recordHash }, events: [FIRST, SECOND] })).toBeNull();
});

it.each<[how: string, reencode: (payload: string) => string]>([
  [
    "with other key order",
    (payload) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(payload)).reverse())),
  ],
  ["with \\u escapes", (payload) => payload.replace("ä", "\\u00e4")],
  ["with a number in another notation", (payload) => payload.replace(":1000", ":1e3")],
  ["with a key twice", (payload) => payload.replace('{"actor', '{"actorConnectedId":"key_1","actor')],
  ["with a byte order mark", (payload) => `\ufeff${payload}`],
])("verifyChain rejects a payload that was encoded again %s, even if the hashes match", (_how, reencode) => {
  const payload = reencode(THIRD.payload ?? "");
  expect(payload).not.toBe(THIRD.payload);
  expect(verify(withRow(3, { payload }))).toEqual({ sequence: 3, problem: expect.stringMatching(/recordHash/) });
  const problem = expect.stringMatching(/not in canonical form|not JSON/);
  expect(verify(withPayload(3, reencode))).toEqual({ sequence: 3, problem });
});

it.each([
  "no JSON",
  '{"v":"\\ud800"}',
  "null",
  "{}",
])("verifyChain rejects the payload %s, even if recordHash and the voucher's last hash match", (payload) => {
  const problem = expect.stringMatching(/payload/);
  expect(verify(withPayload(3, () => payload))).toEqual({ sequence: 3, problem });
});

it.each(
  `v entityType entityId sequence eventType code occurredAt previousHash actorConnectedId
  actorIsEmployee`.split(/\s+/),
)("verifyChain rejects a payload whose %s was changed or removed, even if the hashes match", (field) => {
  for (const value of ["another", 7, false, ["key_1"], undefined]) {
    const change = (payload: string) => {
      const fields = Object.entries({ ...JSON.parse(payload), [field]: value });
      return JSON.stringify(Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1))));
    };
    const problem = `the payload's ${field} is not the stored one`;
    expect(verify(withPayload(3, change))).toEqual({ sequence: 3, problem });
  }
});

it("verifyChain rejects an event whose previousHash was changed in the payload and in the row", () => {
  const elsewhere = "f".repeat(64);
  const change = (payload: string) => payload.replace(SECOND.recordHash ?? "", elsewhere);
  const problem = "previousHash is not the hash of the event before";
  expect(verify(withPayload(3, change, { previousHash: elsewhere }))).toEqual({ sequence: 3, problem });
});

it("verifyChain finds a forged event with a matching recordHash by the next event or the voucher's hash", () => {
  const forge = (payload: string) => payload.replace(NONCE, "f".repeat(32));
  for (const sequence of [1, 2]) {
    const problem = "previousHash is not the hash of the event before";
    expect(verify(withPayload(sequence, forge))).toEqual({ sequence: sequence + 1, problem });
  }
  const problem = "the voucher's sealed head is not the hash of the last sealed event";
  const { events } = withPayload(3, forge);
  expect(verify({ head: HEAD, events })).toEqual({ sequence: 3, problem });
});

it("nextEvent returns the event after the last one, without an actor, and marks a sandbox's event", () => {
  const voucher = { id: VOUCHER, lastSequence: 2, code: "7Q4K-9MZX", serial: 5, sandbox: false };
  const randomBytes = (size: number) => Uint8Array.from({ length: size }, (_, index) => index);
  const next = (sandbox: boolean) =>
    nextEvent(randomBytes, { ...voucher, sandbox }, "voucher.instance.voided", event(3).occurredAt, { reason: null });
  const data = { nonce: NONCE, voucherCode: "7Q4K-9MZX", serial: 5, reason: null };
  const content = event(3, { eventType: "voucher.instance.voided", data });
  expect(next(false)).toStrictEqual(content);
  expect(next(true)).toStrictEqual({ ...content, data: { ...data, sandbox: true } });
});

it("erasedSequencesOf reads the sequences in an erasing event, and ignores other events and damaged payloads", () => {
  const read = (payload: string | null, eventType = "voucher.instance.erased") =>
    erasedSequencesOf({ eventType, payload });
  const say = (data: unknown, eventType = "voucher.instance.erased") => JSON.stringify({ data, eventType });
  const payload = say({ erasedSequences: [1, 2] });
  expect(read(payload)).toEqual([1, 2]);
  expect(read(payload, "voucher.instance.voided")).toEqual([]);
  const otherType = say({ erasedSequences: [1, 2] }, "voucher.instance.voided");
  for (const damaged of [null, "", "null", "{}", say(undefined), say({}), say({ erasedSequences: "1" }), otherType])
    expect(read(damaged), String(damaged)).toEqual([]);
});

/** Makes a chain in which the fourth event erases the second one. */
function withErasure(second: Partial<StoredEvent>, last: Partial<StoredEvent> = {}): Chain {
  const erasing = event(4, { eventType: "voucher.instance.erased", data: { nonce: NONCE, erasedSequences: [2] } });
  const pending = last.sealStatus === "Pending" ? 1 : 0;
  const { head, events } = makeChain([...CONTENTS, erasing], pending);
  const changes: Record<number, Partial<StoredEvent>> = { 2: { payload: null, ...second }, 4: last };
  return { head, events: events.map((row) => ({ ...row, ...changes[row.sequence] })) };
}

it.each<[what: string, chain: Chain, problem: RegExp | null]>([
  ["an event that a later one erases", withErasure({}), null],
  ["an event that names its erasing event", withErasure({ erasedBy: 4 }), null],
  ["an event that names another erasing event", withErasure({ erasedBy: 3 }), /^no later event says/],
  ["an event without a hash", withErasure({ recordHash: null }), /^recordHash is not a hash$/],
  ["a hash with a digit after it", withErasure({ recordHash: `${SECOND.recordHash}0` }), /^recordHash is not a hash$/],
  ["a hash with a digit before it", withErasure({ recordHash: `0${SECOND.recordHash}` }), /^recordHash is not a hash$/],
  [
    "an erasing event that is not sealed",
    withErasure(
      {},
      {
        ...PENDING,
        payload: '{"data":{"erasedSequences":[2]},"eventType":"voucher.instance.erased"}',
      },
    ),
    /^no later event says/,
  ],
])("verifyChain judges an erased payload: %s", (_what, chain, problem) => {
  const expected = problem === null ? null : { sequence: 2, problem: expect.stringMatching(problem) };
  expect(verify(chain)).toEqual(expected);
});

function sha256(text: string): string {
  return createHash("sha256").update(Buffer.from(text, "utf8")).digest("hex");
}

function event(sequence: number, changes: Partial<EventContent> = {}): EventContent {
  return {
    voucherId: VOUCHER,
    sequence,
    eventType: "voucher.instance.issued",
    occurredAt: new Date(Date.UTC(2027, 2, 1, 12, 0, 0, sequence)),
    actorConnectedId: null,
    actorIsEmployee: null,
    data: { nonce: NONCE },
    ...changes,
  };
}

/** Returns the canonical JSON of one value, as it appears in a payload. */
function canonical(value: unknown): string {
  const { payload } = sealEvent(event(1, { data: { nonce: NONCE, value } }), GENESIS_HASH);
  const before = `"data":{"nonce":"${NONCE}","value":`;
  const start = payload.indexOf(before) + before.length;
  return payload.slice(start, payload.indexOf('},"entityId"', start));
}
