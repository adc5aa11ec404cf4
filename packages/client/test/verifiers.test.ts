import { createHash, createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { InvalidWebhook, type VoucherClient, verifyHistory, verifyReceipt, verifyWebhook } from "../src/index.ts";

type History = Awaited<ReturnType<VoucherClient["history"]>>;
type Event = History["events"][number];

const readVectors = (name: string) => JSON.parse(readFileSync(`docs/${name}-vectors.json`, "utf8"));
const { chains, broken, hostile } = readVectors("chain");
const [, , , claimed, pending, erased]: History[] = chains;

const MISSING = "The payload is missing, and no later event says that it was erased.";
const ANOTHER_HASH = "The payload has another hash.";

it("verifyHistory accepts the valid chains of the test vectors, and locates the faults of broken chains", async () => {
  for (const chain of chains) expect(await verifyHistory(chain), chain.name).toMatchObject({ intact: true });
  for (const { expected, ...chain } of broken) {
    expect(await verifyHistory(chain), chain.name).toMatchObject({ intact: false, sequence: expected.sequence });
  }
});

it("verifyHistory gives the published result for every hostile history", async () => {
  const wrong: object[] = [];
  for (const { name, history, verdict } of hostile) {
    const found = await verifyHistory(JSON.parse(history));
    const { intact, sequence } = found as { intact: boolean; sequence?: number };
    if (intact !== verdict.intact || sequence !== verdict.sequence) wrong.push({ name, verdict, found });
  }
  expect(wrong).toEqual([]);
});

it("verifyHistory counts sealed and Pending events, and returns the last sealed event's hash", async () => {
  const headOf = (chain: History | undefined, at: number) => chain?.events[at]?.recordHash;
  const verdicts = await Promise.all(
    [copy(claimed), copy(pending), copy(erased), { ...copy(claimed), events: [] }].map((chain) => verifyHistory(chain)),
  );
  expect(verdicts).toEqual([
    { intact: true, sealed: 3, pending: 0, headHash: headOf(claimed, 2) },
    { intact: true, sealed: 1, pending: 1, headHash: headOf(pending, 0) },
    { intact: true, sealed: 3, pending: 0, headHash: headOf(erased, 2) },
    { intact: true, sealed: 0, pending: 0, headHash: null },
  ]);
});

it.each<
  [what: string, chain: History | undefined, position: number, change: (event: Event) => Partial<Event>, reason: string]
>([
  ["a payload with another note", claimed, 2, ({ payload }) => ({ payload: `${payload} ` }), ANOTHER_HASH],
  ["another recordHash", claimed, 3, () => ({ recordHash: "0".repeat(64) }), ANOTHER_HASH],
  ["another sequence", claimed, 2, () => ({ sequence: 3 }), "The sequence has a gap or a repetition."],
  [
    "another type beside the payload",
    claimed,
    3,
    () => ({ eventType: "voucher.instance.voided" }),
    "The payload has another eventType.",
  ],
  ["another code beside the payload", claimed, 1, () => ({ code: "VCH002" }), "The payload has another code."],
  [
    "another time beside the payload",
    claimed,
    1,
    () => ({ occurredAt: "2020-01-01T00:00:00.000Z" }),
    "The payload has another occurredAt.",
  ],
  [
    "another previousHash beside the payload",
    claimed,
    2,
    () => ({ previousHash: "0".repeat(64) }),
    "The event has another previousHash than its payload.",
  ],
  ["no payload", claimed, 1, () => ({ payload: null }), MISSING],
  [
    "a pending event with a recordHash",
    pending,
    2,
    () => ({ recordHash: "0".repeat(64) }),
    "The event is pending, but has a part of a seal.",
  ],
  [
    "an erased event whose recordHash is longer than a hash",
    erased,
    2,
    ({ recordHash }) => ({ recordHash: `${recordHash}0` }),
    "The recordHash is not a hash.",
  ],
  [
    "an erased event whose recordHash begins with a space",
    erased,
    2,
    ({ recordHash }) => ({ recordHash: ` ${recordHash}` }),
    "The recordHash is not a hash.",
  ],
  ["an erased event without a recordHash", erased, 2, () => ({ recordHash: null }), "The recordHash is not a hash."],
  [
    "an erased event with another previousHash",
    erased,
    2,
    () => ({ previousHash: "0".repeat(64) }),
    "The event has another previousHash than its payload.",
  ],
])("verifyHistory finds %s", async (_what, chain, position, change, reason) => {
  const { entityId, events } = copy(chain);
  const changed = events.map((event, at) => (at === position - 1 ? { ...event, ...change(event) } : event));
  expect(await verifyHistory({ entityId, events: changed })).toEqual({ intact: false, sequence: position, reason });
});

it.each<[what: string, payload: (of: string) => string, reason: string]>([
  [
    "another entityId",
    (of) => of.replace('"entityId":"vch_', '"entityId":"vch_x'),
    "The payload has another entityId.",
  ],
  ["another sequence", (of) => of.replace('"sequence":3', '"sequence":4'), "The payload has another sequence."],
  [
    "another previousHash",
    (of) => of.replace('"previousHash":"', '"previousHash":"0'),
    "The payload has another previousHash.",
  ],
  ["no JSON", () => "no JSON", "The payload is not canonical JSON."],
  ["JSON of null", () => "null", "The payload is not canonical JSON."],
])("verifyHistory rejects a payload with %s, even if its hash matches", async (_what, payload, reason) => {
  const { entityId, events } = copy(claimed);
  const forged = events.map((event, at) => (at === 2 ? withPayload(event, payload(String(event.payload))) : event));
  expect(await verifyHistory({ entityId, events: forged })).toEqual({ intact: false, sequence: 3, reason });
});

it("verifyHistory rejects a sealed event after a Pending one, even with a valid link", async () => {
  const { entityId, events } = copy(claimed);
  const [first, , third] = events as [Event, Event, Event];
  const payload = JSON.stringify({ ...JSON.parse(String(third.payload)), previousHash: first.recordHash });
  const sealed = { ...withPayload(third, payload), previousHash: first.recordHash };
  const skipped = { ...(pending?.events[1] as Event), sequence: 2 };
  const reason = "A sealed event follows a pending one.";
  expect(await verifyHistory({ entityId, events: [first, skipped, sealed] })).toEqual({
    intact: false,
    sequence: 3,
    reason,
  });
});

it("verifyHistory accepts a missing payload only if a later erasing event names the payload's event", async () => {
  const { entityId, events } = copy(erased);
  const [first, second, third] = events as [Event, Event, Event];
  const saying = (said: object, type: Partial<Event> = {}) => {
    const payload = JSON.stringify({ ...JSON.parse(String(third.payload)), ...said, ...type });
    return verifyHistory({ entityId, events: [first, second, { ...withPayload(third, payload), ...type }] });
  };
  const missing = { intact: false, sequence: 2, reason: MISSING };
  const early = { intact: false, sequence: 3, reason: "The event erases one that is not an earlier one." };
  expect(await saying({ data: { erasedSequences: [2] } })).toMatchObject({ intact: true });
  expect(await saying({ data: { erasedSequences: [2] } }, { eventType: "voucher.instance.voided" })).toEqual(missing);
  expect(await saying({ data: { erasedSequences: [2] } }, { sealStatus: "Pending" })).toEqual(missing);
  expect(await saying({ data: { erasedSequences: [1] } })).toEqual(missing);
  expect(await saying({ data: { erasedSequences: "2" } })).toEqual(missing);
  expect(await saying({ data: undefined })).toEqual(missing);
  expect(await saying({ data: { erasedSequences: [2, 3] } })).toEqual(early);
  expect(await saying({ data: { erasedSequences: [2, null, "x"] } })).toEqual(early);
});

it("verifyHistory rejects another voucher's history, and a history without a hash that the caller saved", async () => {
  const { entityId, events } = copy(claimed);
  const reason = "The payload has another entityId.";
  expect(await verifyHistory({ entityId: "vch_other", events })).toEqual({ intact: false, sequence: 1, reason });
  const gone = { intact: false, sequence: 2, reason: "The hash that you kept is not in the history." };
  for (const { recordHash } of events)
    expect(await verifyHistory({ entityId, events }, String(recordHash))).toMatchObject({ intact: true });
  expect(await verifyHistory({ entityId, events: events.slice(0, 2) }, String(events[2]?.recordHash))).toEqual(gone);
});

const { receipts, policy, broken: brokenReceipts, unusual } = readVectors("log");

it("verifyReceipt returns the event of a receipt that the policy accepts", async () => {
  const { event, index, witnesses } = await verifyReceipt(receipts[2].receipt, policy);
  expect({ index, event }).toMatchObject({
    index: receipts[2].index,
    event: { eventType: "voucher.instance.redeemed" },
  });
  expect(witnesses).toEqual([{ name: "witness.example.net/w1", time: 1_800_000_000 }]);
});

it("verifyReceipt accepts every unusual receipt of the test vectors", async () => {
  for (const { receipt, name } of unusual)
    expect(await verifyReceipt(receipt, policy), name).toMatchObject({ index: 0 });
});

it("verifyReceipt throws an error with the reason for each receipt that it refuses", async () => {
  for (const { receipt, name } of brokenReceipts)
    await expect(verifyReceipt(receipt, policy), name).rejects.toThrow(/\.$/);
  const proof = receipts[2].receipt.replace(/^extra .*\n/m, "");
  await expect(verifyReceipt(proof, policy)).rejects.toThrow("The receipt has no payload.");
});

const NOW_S = 1_800_000_000;
const SECRET = `whsec_${Buffer.from("a secret of an endpoint").toString("base64")}`;
const BODY = '{"type":"webhook.test","note":"für 😀"}';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW_S * 1_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

it("verifyWebhook accepts one valid signature among others, and headers in both of their forms", async () => {
  const headers = sign(NOW_S);
  const both = { ...headers, "webhook-signature": `v1,${"A".repeat(43)}= v2,x ${headers["webhook-signature"]}` };
  for (const given of [headers, both, new Headers(headers)])
    expect(await verifyWebhook(BODY, given, SECRET)).toEqual({ id: "evt_1", event: JSON.parse(BODY) });
});

it("verifyWebhook accepts only requests whose time is within five minutes of now", async () => {
  const late = /^The request is too old, or this clock is wrong\.$/;
  for (const offset of [-300, 300])
    expect(await verifyWebhook(BODY, sign(NOW_S + offset), SECRET)).toHaveProperty("id");
  for (const time of [NOW_S - 301, NOW_S + 301, "soon"]) {
    const verified = verifyWebhook(BODY, sign(time), SECRET);
    await expect(verified, `${time}`).rejects.toThrow(late);
    await expect(verified, `${time}`).rejects.toMatchObject({ name: "InvalidWebhook" });
  }
});

it("verifyWebhook rejects a request with a missing or repeated header", async () => {
  const headers = sign(NOW_S);
  for (const name of Object.keys(headers)) {
    for (const value of [undefined, ["a", "b"]])
      await expect(verifyWebhook(BODY, { ...headers, [name]: value }, SECRET)).rejects.toThrow(
        "The request has no signature.",
      );
  }
});

it("verifyWebhook rejects a signature that does not match the body, id, time or secret", async () => {
  const headers = sign(NOW_S);
  const [, signature = ""] = headers["webhook-signature"].split(",");
  for (const [body, changed, secret] of [
    [`${BODY} `, {}, SECRET],
    [BODY, { "webhook-id": "evt_2" }, SECRET],
    [BODY, { "webhook-timestamp": String(NOW_S + 1) }, SECRET],
    [BODY, {}, `whsec_${btoa("another secret")}`],
    [BODY, { "webhook-signature": `v2,${signature}` }, SECRET],
    [BODY, { "webhook-signature": ` v1,${signature}=` }, SECRET],
    [BODY, { "webhook-signature": `xv1,${signature}` }, SECRET],
    [BODY, { "webhook-signature": "" }, SECRET],
  ] as const) {
    const verified = verifyWebhook(body, { ...headers, ...changed }, secret);
    await expect(verified).rejects.toThrow(InvalidWebhook);
    await expect(verified).rejects.toThrow(/^The signature is not of this secret\.$/);
  }
});

it("verifyWebhook accepts a signing secret with and without the prefix", async () => {
  const bare = SECRET.slice("whsec_".length);
  expect(await verifyWebhook(BODY, sign(NOW_S), bare)).toHaveProperty("id", "evt_1");
  await expect(verifyWebhook(BODY, sign(NOW_S), `${bare.slice(0, 8)}whsec_${bare.slice(8)}`)).rejects.toThrow();
});

/** A copy of a history that a test may change. */
function copy(chain: History | undefined): History {
  if (chain === undefined) throw new Error("the vectors have no such chain");
  return structuredClone(chain);
}

/** The event with another payload and the hash of that payload. */
function withPayload(event: Event, payload: string): Event {
  return { ...event, payload, recordHash: createHash("sha256").update(payload).digest("hex") };
}

/** The signed headers of a request that was sent at this time, in seconds since 1970. */
function sign(time: number | string) {
  const key = Buffer.from(SECRET.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`evt_1.${time}.${BODY}`).digest("base64");
  return { "webhook-id": "evt_1", "webhook-timestamp": String(time), "webhook-signature": `v1,${signature}` };
}
