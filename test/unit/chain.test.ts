import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  ANCHOR_NAMESPACE,
  type ChainHead,
  ENTITY_TYPE,
  EVENT_CODES,
  type EventContent,
  type EventType,
  GENESIS_HASH,
  type StoredEvent,
  sealEvent,
  verifyChain,
} from "../../src/domain/chain.ts";

const VOUCHER = "vch_01jz3v8q4xe7j9t2m5n6p8r0s1";
const NONCE = "000102030405060708090a0b0c0d0e0f";

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

it("the sealed form of an event matches the documentation character by character, and has its SHA-256 and the given previousHash", () => {
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

it("the sealed form of an event contains the fields of an event and no others", () => {
  const { payload } = sealEvent(event(1, { actorConnectedId: "user-1", actorIsEmployee: true }), GENESIS_HASH);
  expect(JSON.parse(payload)).toEqual({
    v: 1,
    entityType: "VoucherInstance",
    entityId: VOUCHER,
    sequence: 1,
    eventType: "voucher.instance.issued",
    code: "VCH001",
    occurredAt: "2027-03-01T12:00:00.001Z",
    previousHash: "0".repeat(64),
    actorConnectedId: "user-1",
    actorIsEmployee: true,
    data: { nonce: NONCE },
  });
});

it.each([
  ["voucher.instance.issued", "VCH001"],
  ["voucher.instance.claimed", "VCH002"],
  ["voucher.instance.bought", "VCH003"],
  ["voucher.instance.redeemed", "VCH004"],
  ["voucher.instance.voided", "VCH005"],
  ["voucher.instance.expired", "VCH006"],
])("the sealed form of an event gives %s the code %s", (eventType, code) => {
  const { payload } = sealEvent(event(1, { eventType: eventType as EventType }), GENESIS_HASH);
  expect(JSON.parse(payload)).toMatchObject({ eventType, code });
  expect(Object.keys(EVENT_CODES)).toHaveLength(6);
});

it("the first event of a chain has a previousHash of 64 zeros", () => {
  expect(GENESIS_HASH).toBe("0000000000000000000000000000000000000000000000000000000000000000");
  expect(ENTITY_TYPE).toBe("VoucherInstance");
  expect(ANCHOR_NAMESPACE).toBe("VoucherInstance:events");
});

it("the sealed form of an event omits undefined fields and keeps null and empty ones", () => {
  const { payload } = sealEvent(
    event(1, { data: { nonce: NONCE, note: undefined, ticket: null, reason: "" } }),
    GENESIS_HASH,
  );
  expect(payload).toContain(`"data":{"nonce":"${NONCE}","reason":"","ticket":null}`);
  expect(payload).not.toContain("note");
});

it("the sealed form of an event does not depend on the order of an event's fields", () => {
  const one = sealEvent(event(1, { data: { nonce: NONCE, a: 1, b: { c: 2, d: 3 } } }), GENESIS_HASH);
  const other = sealEvent(event(1, { data: { b: { d: 3, c: 2 }, a: 1, nonce: NONCE } }), GENESIS_HASH);
  expect(other).toEqual(one);
});

it("the sealed form of an event has another hash if any field or the previous hash changes", () => {
  const hashes = [
    sealEvent(event(1), GENESIS_HASH),
    sealEvent(event(1), "1".repeat(64)),
    sealEvent(event(2, { occurredAt: event(1).occurredAt }), GENESIS_HASH),
    sealEvent(event(1, { voucherId: `${VOUCHER}x` }), GENESIS_HASH),
    sealEvent(event(1, { eventType: "voucher.instance.voided" }), GENESIS_HASH),
    sealEvent(event(1, { occurredAt: event(2).occurredAt }), GENESIS_HASH),
    sealEvent(event(1, { actorConnectedId: "key_1" }), GENESIS_HASH),
    sealEvent(event(1, { actorIsEmployee: false }), GENESIS_HASH),
    sealEvent(event(1, { data: { nonce: "1".repeat(32) } }), GENESIS_HASH),
  ].map((seal) => seal.recordHash);
  expect(new Set(hashes).size).toBe(hashes.length);
  for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{64}$/);
});

it("canonical JSON sorts keys by UTF-16 code units (the example of section 3.2.3 of RFC 8785)", () => {
  const value = {
    "\u20ac": "Euro Sign",
    "\r": "Carriage Return",
    "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face",
    "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis",
  };
  expect(canonical(value)).toBe(
    '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",' +
      '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
  );
});

it("canonical JSON sorts the keys of objects inside arrays and leaves arrays in their order", () => {
  expect(canonical([{ b: 1, a: [3, 1, 2] }, "z", "a"])).toBe('[{"a":[3,1,2],"b":1},"z","a"]');
});

it("canonical JSON writes the numbers and literals of section 3.2.2 of RFC 8785", () => {
  // biome-ignore lint/correctness/noPrecisionLoss: the RFC's own example.
  expect(canonical([333333333.33333329, 1e30, 4.5, 2e-3, 0.000000000000000000000000001])).toBe(
    "[333333333.3333333,1e+30,4.5,0.002,1e-27]",
  );
  expect(canonical([null, true, false])).toBe("[null,true,false]");
});

it.each([
  [0, "0"],
  [-0, "0"],
  [Number.MIN_VALUE, "5e-324"],
  [Number.MAX_VALUE, "1.7976931348623157e+308"],
  [9007199254740992, "9007199254740992"],
  [295147905179352830000, "295147905179352830000"],
  [9.999999999999997e22, "9.999999999999997e+22"],
  [1e23, "1e+23"],
  [1e21, "1e+21"],
  [999999999999999900000, "999999999999999900000"],
  [0.000001, "0.000001"],
  [0.0000001, "1e-7"],
  [333333333.3333332, "333333333.3333332"],
  [1e3, "1000"],
  [19.9, "19.9"],
  [40.25, "40.25"],
  [9999999999.99, "9999999999.99"],
])("canonical JSON writes the number %d as %s", (number, text) => {
  expect(canonical(number)).toBe(text);
});

it("canonical JSON escapes the characters that section 3.2.2.2 of RFC 8785 lists, and no others", () => {
  expect(canonical('€$\u000f\nA\'B"\\\\"/')).toBe('"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"');
  expect(canonical("\b\t\n\f\r\0\u001f\u007f\u2028\u2029")).toBe('"\\b\\t\\n\\f\\r\\u0000\\u001f\u007f\u2028\u2029"');
});

it("canonical JSON keeps characters beyond ASCII, without Unicode normalization", () => {
  expect(canonical("é e\u0301 ß 漢 🎟️")).toBe('"é e\u0301 ß 漢 🎟️"');
});

it.each([
  ["a lone high surrogate", "\ud800"],
  ["a lone low surrogate", "\udc00 behind"],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
])("canonical JSON cannot represent %s, so sealing fails", (_name, value) => {
  expect(() => canonical(value)).toThrow();
  expect(() => canonical({ inside: [value] })).toThrow();
});

it("canonical JSON cannot represent a lone surrogate in a key or an invalid date, so sealing fails", () => {
  expect(() => canonical({ "\ud800": 1 })).toThrow();
  expect(() => sealEvent(event(1, { occurredAt: new Date(Number.NaN) }), GENESIS_HASH)).toThrow();
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

/** Makes a valid chain of these events. The last `pending` events are not sealed. */
function makeChain(contents: readonly EventContent[] = CONTENTS, pending = 0): Chain {
  let previousHash = GENESIS_HASH;
  let sealedSequence = 0;
  const events = contents.map((content, index): StoredEvent => {
    const row = {
      voucherId: content.voucherId,
      sequence: content.sequence,
      eventType: content.eventType,
      occurredAt: content.occurredAt,
      actorConnectedId: content.actorConnectedId,
      actorIsEmployee: content.actorIsEmployee,
    };
    if (index >= contents.length - pending) {
      return { ...row, sealStatus: "Pending", previousHash: null, recordHash: null, payload: null };
    }
    const seal = sealEvent(content, previousHash);
    previousHash = seal.recordHash;
    sealedSequence = content.sequence;
    return { ...row, sealStatus: "Sealed", ...seal };
  });
  return {
    events,
    head: {
      lastSequence: contents.length,
      sealedSequence,
      sealedHash: sealedSequence === 0 ? null : previousHash,
    },
  };
}

/** Makes a valid chain and changes the row with this sequence. */
function withRow(sequence: number, changes: Partial<StoredEvent>): Chain {
  const chain = makeChain();
  return { ...chain, events: chain.events.map((row) => (row.sequence === sequence ? { ...row, ...changes } : row)) };
}

/** Makes a valid chain and changes the payload of a row. Its recordHash, and for the last event the head, match the new payload. */
function withPayload(sequence: number, change: (payload: string) => string, row: Partial<StoredEvent> = {}): Chain {
  const payload = change(makeChain().events[sequence - 1]?.payload ?? "");
  const recordHash = sha256(payload);
  const chain = withRow(sequence, { payload, recordHash, ...row });
  return sequence === CONTENTS.length ? { ...chain, head: { ...chain.head, sealedHash: recordHash } } : chain;
}

function verify(chain: Chain) {
  return verifyChain(VOUCHER, chain.head, chain.events);
}

describe("verifyChain", () => {
  it("verifyChain accepts valid chains with any number of pending events at the end", () => {
    for (let length = 0; length <= CONTENTS.length; length++) {
      for (let pending = 0; pending <= length; pending++) {
        expect(
          verify(makeChain(CONTENTS.slice(0, length), pending)),
          `${length} events, ${pending} pending`,
        ).toBeNull();
      }
    }
  });

  describe.each([1, 2, 3])("with row %i changed", (sequence) => {
    const row = makeChain().events[sequence - 1] as StoredEvent;

    it.each<[string, Partial<StoredEvent>, RegExp]>([
      ["its sequence", { sequence: 9 }, new RegExp(`event ${sequence} is missing`)],
      ["its eventType", { eventType: "voucher.instance.voided" }, /eventType/],
      ["an eventType that does not exist", { eventType: "voucher.instance.refunded" }, /eventType/],
      ["its occurredAt, by a millisecond", { occurredAt: new Date(row.occurredAt.getTime() + 1) }, /occurredAt/],
      ["its actorConnectedId", { actorConnectedId: "key_2" }, /actorConnectedId/],
      ...(row.actorConnectedId === null
        ? []
        : [
            ["its actorConnectedId, to nothing", { actorConnectedId: null }, /actorConnectedId/] as [
              string,
              object,
              RegExp,
            ],
          ]),
      ["its actorIsEmployee", { actorIsEmployee: row.actorIsEmployee === null ? false : null }, /actorIsEmployee/],
      ["its previousHash", { previousHash: "f".repeat(64) }, /previousHash/],
      ["its previousHash, to nothing", { previousHash: null }, /previousHash/],
      ["its recordHash", { recordHash: "f".repeat(64) }, /recordHash/],
      ["its recordHash, to nothing", { recordHash: null }, /recordHash/],
      ["its recordHash, to upper case", { recordHash: (row.recordHash ?? "").toUpperCase() }, /recordHash/],
      ["its payload", { payload: (row.payload ?? "").replace(NONCE, NONCE.replace("0", "1")) }, /recordHash/],
      ["its payload, to nothing", { payload: null }, /no payload/],
      ["its payload, to an empty text", { payload: "" }, /recordHash/],
    ])(`verifyChain reports a change of %s in row ${sequence}`, (_what, changes, problem) => {
      expect(verify(withRow(sequence, changes))).toEqual({ sequence, problem: expect.stringMatching(problem) });
    });

    it("verifyChain reports a removed seal", () => {
      const unsealed = { sealStatus: "Pending", previousHash: null, recordHash: null, payload: null } as const;
      const found = verify(withRow(sequence, unsealed));
      // In the middle of the chain, the next event shows the problem. At the end, the head shows it.
      if (sequence < 3) expect(found).toEqual({ sequence: sequence + 1, problem: "sealed after a pending event" });
      else expect(found).toEqual({ sequence: 3, problem: expect.stringMatching(/3 sealed events, 2 exist/) });
    });
  });

  it("verifyChain reports a chain that is stored under another voucher", () => {
    const { head, events } = makeChain();
    expect(verifyChain("vch_other", head, events)).toEqual({ sequence: 1, problem: expect.stringMatching(/entityId/) });
  });

  it("verifyChain reports an event that was moved from another voucher's chain", () => {
    const other = makeChain(CONTENTS.map((content) => ({ ...content, voucherId: "vch_other" })));
    const { head, events } = makeChain();
    const [first, second] = [events[0] as StoredEvent, other.events[1] as StoredEvent];
    const moved = [first, { ...second, voucherId: VOUCHER }];
    expect(verifyChain(VOUCHER, { ...head, lastSequence: 2 }, moved)).toMatchObject({ sequence: 2 });
    // It is reported even if its previousHash fits, because its payload contains the other voucher's id.
    const relinked = sealEvent({ ...(CONTENTS[1] as EventContent), voucherId: "vch_other" }, first.recordHash ?? "");
    expect(
      verifyChain(VOUCHER, { lastSequence: 2, sealedSequence: 2, sealedHash: relinked.recordHash }, [
        first,
        { ...second, voucherId: VOUCHER, ...relinked },
      ]),
    ).toEqual({ sequence: 2, problem: expect.stringMatching(/entityId/) });
  });

  const [FIRST, SECOND, THIRD] = makeChain().events as [StoredEvent, StoredEvent, StoredEvent];
  const UNSEALED = { sealStatus: "Pending", previousHash: null, recordHash: null, payload: null } as const;
  const moved = (row: StoredEvent, sequence: number) => ({ ...row, sequence });
  const { head: HEAD } = makeChain();
  const countOf = (n: number) => ({ ...HEAD, lastSequence: n, sealedSequence: n });
  const half = makeChain(CONTENTS, 1);
  const LINK = /previousHash/;

  it.each<[what: string, head: ChainHead, events: StoredEvent[], sequence: number, problem: RegExp]>([
    ["a removed event in the middle", HEAD, [FIRST, THIRD], 2, /^event 2 is missing$/],
    ["a removed first event", HEAD, [SECOND, THIRD], 1, /^event 1 is missing$/],
    ["a removed event, after which the next is renumbered", countOf(2), [FIRST, moved(THIRD, 2)], 2, LINK],
    [
      "a removed first event, after which the others are renumbered",
      countOf(2),
      [moved(SECOND, 1), moved(THIRD, 2)],
      1,
      LINK,
    ],
    ["swapped events", HEAD, [FIRST, THIRD, SECOND], 2, /^event 2 is missing$/],
    ["swapped events with swapped sequences", HEAD, [FIRST, moved(THIRD, 2), moved(SECOND, 3)], 2, LINK],
    ["an event twice", countOf(4), [FIRST, SECOND, SECOND, THIRD], 3, /^event 3 is missing$/],
    ["an event twice, renumbered", countOf(4), [FIRST, SECOND, moved(SECOND, 3), moved(THIRD, 4)], 3, LINK],
    ["a removed last event", HEAD, [FIRST, SECOND], 3, /^the voucher counts 3 events, 2 exist$/],
    ["a chain without events", HEAD, [], 3, /^the voucher counts 3 events, 0 exist$/],
    ["a removed pending event", half.head, half.events.slice(0, -1), 3, /events, 2 exist$/],
    [
      "an added pending event",
      half.head,
      [...half.events, moved(half.events[2] as StoredEvent, 4)],
      3,
      /3 events, 4 exist$/,
    ],
    [
      "a seal after a pending event",
      HEAD,
      [FIRST, { ...SECOND, ...UNSEALED }, THIRD],
      3,
      /^sealed after a pending event$/,
    ],
    ["the first of several problems", countOf(9), [{ ...FIRST, payload: "{}" }, THIRD], 1, /./],
  ])("verifyChain reports %s", (_, head, events, sequence, problem) => {
    expect(verifyChain(VOUCHER, head, events)).toEqual({ sequence, problem: expect.stringMatching(problem) });
  });

  it("verifyChain accepts a chain without its last event if the head was changed to match", () => {
    expect(verifyChain(VOUCHER, { ...countOf(2), sealedHash: SECOND.recordHash }, [FIRST, SECOND])).toBeNull();
  });

  it.each<[string, Partial<ChainHead>, number, RegExp]>([
    ["a last sequence that is too high", { lastSequence: 4 }, 4, /4 events, 3 exist/],
    ["a last sequence that is too low", { lastSequence: 2 }, 2, /2 events, 3 exist/],
    ["a sealed sequence that is too high", { sealedSequence: 4 }, 4, /4 sealed events, 3 exist/],
    ["a sealed sequence that is too low", { sealedSequence: 2 }, 2, /2 sealed events, 3 exist/],
    ["a hash of no event", { sealedHash: "f".repeat(64) }, 3, /sealed head/],
    ["the hash of an earlier event", { sealedHash: makeChain().events[1]?.recordHash ?? "" }, 3, /sealed head/],
    ["the genesis hash", { sealedHash: GENESIS_HASH }, 3, /sealed head/],
    ["no hash", { sealedHash: null }, 3, /sealed head/],
  ])("verifyChain reports a head with %s", (_what, changes, sequence, problem) => {
    const { head, events } = makeChain();
    expect(verifyChain(VOUCHER, { ...head, ...changes }, events)).toEqual({
      sequence,
      problem: expect.stringMatching(problem),
    });
  });

  it("verifyChain reports a head with a hash if no event is sealed", () => {
    const { head, events } = makeChain(CONTENTS, 3);
    expect(verifyChain(VOUCHER, { ...head, sealedHash: "f".repeat(64) }, events)).toMatchObject({ sequence: 0 });
  });

  /** Other JSON encodings of the same content. */
  const REENCODINGS: [string, (payload: string) => string][] = [
    ["with white space", (payload) => JSON.stringify(JSON.parse(payload), null, 1)],
    ["followed by a space", (payload) => `${payload} `],
    [
      "with its keys in another order",
      (payload) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(payload)).reverse())),
    ],
    ["with \\u escapes", (payload) => payload.replace("ä", "\\u00e4")],
    ["with an escaped slash", (payload) => payload.replace("/", "\\/")],
    [
      "with a number in another notation",
      (payload) => payload.replace('"retailPriceUsd":1000', '"retailPriceUsd":1e3'),
    ],
    [
      "with a number that has trailing zeros",
      (payload) => payload.replace('"retailPriceUsd":1000', '"retailPriceUsd":1000.00'),
    ],
    ["with a key twice", (payload) => payload.replace('{"actor', '{"actorConnectedId":"key_1","actor')],
    ["with a byte order mark", (payload) => `\ufeff${payload}`],
  ];

  it.each(REENCODINGS)("verifyChain reports a payload that was encoded again %s", (_how, reencode) => {
    const payload = reencode(makeChain().events[2]?.payload ?? "");
    expect(payload).not.toBe(makeChain().events[2]?.payload);
    expect(verify(withRow(3, { payload }))).toEqual({ sequence: 3, problem: expect.stringMatching(/recordHash/) });
  });

  it.each(
    REENCODINGS,
  )("verifyChain reports a payload that was encoded again even if recordHash and head match: %s", (_how, reencode) => {
    expect(verify(withPayload(3, reencode))).toEqual({
      sequence: 3,
      problem: expect.stringMatching(/not in canonical form|not JSON/),
    });
  });

  it.each([
    ["no JSON at all", "no JSON"],
    ["JSON that is cut off", '{"v":1'],
    ["a lone surrogate", '{"v":"\\ud800"}'],
    ["a list", "[]"],
    ["a number", "1"],
    ["a text", '"text"'],
    ["null", "null"],
    ["an object without the fields", "{}"],
  ])("verifyChain reports a payload that is %s, even if recordHash and head match", (_what, payload) => {
    expect(verify(withPayload(3, () => payload))).toEqual({
      sequence: 3,
      problem: expect.stringMatching(/payload/),
    });
  });

  it("verifyChain reports an occurredAt of infinity, which Postgres can store", () => {
    const occurredAt = Number.POSITIVE_INFINITY as unknown as Date;
    expect(verify(withRow(2, { occurredAt }))).toEqual({ sequence: 2, problem: expect.stringMatching(/occurredAt/) });
  });

  it.each(
    `v entityType entityId sequence eventType code occurredAt previousHash actorConnectedId
    actorIsEmployee`.split(/\s+/),
  )("verifyChain reports a payload with another %s or without it, even if the hashes match", (field) => {
    const changed = (change: (content: Record<string, unknown>) => void) =>
      withPayload(3, (payload) => {
        const content = JSON.parse(payload);
        change(content);
        return JSON.stringify(Object.fromEntries(Object.entries(content).sort(([a], [b]) => (a < b ? -1 : 1))));
      });
    for (const value of ["another", 7, false, ["key_1"]]) {
      expect(verify(changed((content) => Object.assign(content, { [field]: value })))).toEqual({
        sequence: 3,
        problem: `the payload's ${field} is not the stored one`,
      });
    }
    expect(verify(changed((content) => delete content[field]))).toEqual({
      sequence: 3,
      problem: `the payload's ${field} is not the stored one`,
    });
  });

  it("verifyChain reports a payload whose previousHash was changed, even if its recordHash matches", () => {
    const elsewhere = "f".repeat(64);
    const change = (payload: string) => payload.replace(makeChain().events[1]?.recordHash ?? "", elsewhere);
    expect(verify(withPayload(3, change))).toEqual({
      sequence: 3,
      problem: "the payload's previousHash is not the stored one",
    });
    expect(verify(withPayload(3, change, { previousHash: elsewhere }))).toEqual({
      sequence: 3,
      problem: "previousHash is not the hash of the event before",
    });
  });

  it("verifyChain reports the event after a forged one, or the head if the last event was forged, even if the recordHash matches", () => {
    const forge = (payload: string) => payload.replace(NONCE, "f".repeat(32));
    for (const sequence of [1, 2]) {
      expect(verify(withPayload(sequence, forge))).toEqual({
        sequence: sequence + 1,
        problem: "previousHash is not the hash of the event before",
      });
    }
    const forgedLast = withPayload(3, forge);
    expect(verify({ ...forgedLast, head: makeChain().head })).toEqual({
      sequence: 3,
      problem: "the voucher's sealed head is not the hash of the last sealed event",
    });
  });

  it("verifyChain reports the head if the whole chain was forged and sealed again", () => {
    const [first, ...rest] = CONTENTS as [EventContent, ...EventContent[]];
    const forged = makeChain([{ ...first, data: { ...first.data, priceUsd: 0 } }, ...rest]);
    expect(verifyChain(VOUCHER, makeChain().head, forged.events)).toEqual({
      sequence: 3,
      problem: "the voucher's sealed head is not the hash of the last sealed event",
    });
  });
});
