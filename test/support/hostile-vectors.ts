import { createHash } from "node:crypto";
import { GENESIS_HASH } from "../../src/core/chain/chain.ts";
import type { HostileVector, VectorChain } from "./write-vectors.ts";

/** An event, possibly in a state that the service never creates. */
type Event = Record<string, unknown>;
type Change = (events: Event[], history: Event) => unknown[] | undefined;

/** A vector's name, the sequence at which its history is broken (null if intact), and what creates it. */
type Row = [name: string, brokenAt: number | null, change: Change];

const sha256 = (text: unknown) => createHash("sha256").update(String(text), "utf8").digest("hex");

/** Sets these members of an event. Undefined removes a member. */
const beside =
  (sequence: number, members: Event): Change =>
  (events) =>
    void Object.assign(events[sequence - 1] ?? {}, members);

/** Rewrites a payload and all hashes and links from that event on, so that only the content reveals the change. */
const payload =
  (sequence: number, write: (text: string) => string, members: Event = {}): Change =>
  (events) => {
    let previousHash: unknown = events[sequence - 2]?.recordHash ?? GENESIS_HASH;
    for (const [after, event] of events.slice(sequence - 1).entries()) {
      if (event.sealStatus === "Pending") continue;
      if (typeof event.payload === "string") {
        const linked = event.payload.replace(`:"${event.previousHash}"`, `:"${previousHash}"`);
        event.payload = after === 0 ? write(linked) : linked;
        event.recordHash = sha256(event.payload);
      }
      event.previousHash = previousHash;
      if (after === 0) Object.assign(event, members);
      previousHash = event.recordHash;
    }
  };

/** Replaces a part of the first payload, and gives the event these members. */
const reword = (from: string | RegExp, to: string, members?: Event) =>
  payload(
    1,
    (text) => {
      const changed = text.replace(from, to);
      if (changed === text) throw new Error(`the first payload has no ${from}`);
      return changed;
    },
    members,
  );

/** Replaces `"erasedSequences":[2]` in the third event with this text. */
const erase = (said: string) => payload(3, (text) => text.replace('"erasedSequences":[2]', said));

/** Writes an event's recordHash in upper case, and links the next event to it. */
const upperCase =
  (sequence: number): Change =>
  (events) => {
    const [event = {}, next] = events.slice(sequence - 1);
    event.recordHash = String(event.recordHash).toUpperCase();
    if (next?.payload === null) next.previousHash = event.recordHash;
  };

/** Replaces a member of an event by a list that contains the member's value. */
const inList =
  (sequence: number, member: string): Change =>
  (events) => {
    const event = events[sequence - 1] ?? {};
    event[member] = [event[member]];
  };

const HASH_MEMBERS = ["recordHash", "previousHash"];
const SEALED_MEMBERS = [...HASH_MEMBERS, "sequence", "eventType", "code", "occurredAt"];

/** Changes of a sealed event's members. `PAYLOADS` has the changes of a payload's content. */
const BESIDE_SEALED: Row[] = [
  ...[...SEALED_MEMBERS, "payload"].flatMap((member): Row[] => [
    [`event 1: ${member} is missing`, 1, beside(1, { [member]: undefined })],
    [`event 1: ${member} is null`, 1, beside(1, { [member]: null })],
    [`event 1: ${member} is in a list`, 1, inList(1, member)],
  ]),
  ["event 1: sequence is text", 1, beside(1, { sequence: "1" })],
  ["event 1: sequence is true", 1, beside(1, { sequence: true })],
  ["event 1: sequence is 1.5", 1, beside(1, { sequence: 1.5 })],
  ["event 1: payload is a number", 1, beside(1, { payload: 1 })],
  ["event 1: payload is false", 1, beside(1, { payload: false })],
  ["event 1: payload is empty", 1, beside(1, { payload: "" })],
  ["event 1: payload is an object", 1, beside(1, { payload: {} })],
  ["event 1: eventType is of another type", 1, beside(1, { eventType: "voucher.instance.bought" })],
  ["event 1: eventType is unknown", 1, beside(1, { eventType: "voucher.instance.moved" })],
  ["event 1: code is of another type", 1, beside(1, { code: "VCH002" })],
  ["event 1: occurredAt is another", 1, beside(1, { occurredAt: "2020-01-01T00:00:00.000Z" })],
  [
    "event 1: occurredAt is the same time in another form",
    1,
    ([event]) => void (event && Object.assign(event, { occurredAt: String(event.occurredAt).replace("Z", "+00:00") })),
  ],
  ["event 1: actorConnectedId is another", 1, beside(1, { actorConnectedId: "key_other" })],
  ["event 1: actorIsEmployee is another", 1, beside(1, { actorIsEmployee: false })],
  [
    "event 1: actorConnectedId and actorIsEmployee are missing",
    null,
    beside(1, { actorConnectedId: undefined, actorIsEmployee: undefined }),
  ],
  ["event 1: an unknown member", null, beside(1, { colour: "green" })],
  ["event 1: recordHash is in upper case", 1, upperCase(1)],
  ["event 1: sealStatus is unknown", null, beside(1, { sealStatus: "Archived" })],
  ["event 1: sealStatus is missing", null, beside(1, { sealStatus: undefined })],
  ["event 1: sealStatus is Pending", 1, beside(1, { sealStatus: "Pending" })],
];

/** Changes of other events' members. The third event erases the second, and the fourth is Pending. */
const BESIDE_OTHERS: Row[] = [
  ["event 2: recordHash is in upper case", 2, upperCase(2)],
  ...HASH_MEMBERS.flatMap((member): Row[] => [
    [`event 2: ${member} is missing`, 2, beside(2, { [member]: undefined })],
    [`event 2: ${member} is null`, 2, beside(2, { [member]: null })],
    [`event 2: ${member} is empty`, 2, beside(2, { [member]: "" })],
    [`event 2: ${member} is in a list`, 2, inList(2, member)],
    [
      `event 2: ${member} has a line end`,
      2,
      ([, event]) => void (event && Object.assign(event, { [member]: `${event[member]}\n` })),
    ],
  ]),
  ["event 2: payload is missing", null, beside(2, { payload: undefined })],
  ["event 2: payload is empty", 2, beside(2, { payload: "" })],
  ["event 2: payload is false", 2, beside(2, { payload: false })],
  ["event 2: erasedBy is missing", null, beside(2, { erasedBy: undefined })],
  ["event 2: erasedBy is null", null, beside(2, { erasedBy: null })],
  ["event 2: erasedBy is text", 2, beside(2, { erasedBy: "3" })],
  ["event 2: erasedBy is false", 2, beside(2, { erasedBy: false })],
  ["event 2: erasedBy is its own sequence", 2, beside(2, { erasedBy: 2 })],
  ["event 2: erasedBy is an event that does not name it", 2, beside(2, { erasedBy: 4 })],
  ["event 2: sequence is text", 2, beside(2, { sequence: "2" })],
  ["event 4: sequence is text", 4, beside(4, { sequence: "4" })],
  ["event 4: sequence is missing", 4, beside(4, { sequence: undefined })],
  ["event 4: sequence is another", 4, beside(4, { sequence: 5 })],
  [
    "event 4: what a Pending event lacks is missing",
    null,
    beside(4, { payload: undefined, recordHash: undefined, previousHash: undefined }),
  ],
  ["event 4: payload is empty", 4, beside(4, { payload: "" })],
  ["event 4: recordHash is empty", 4, beside(4, { recordHash: "" })],
  ["event 4: previousHash is false", 4, beside(4, { previousHash: false })],
  ...[2, 3].map((at): Row => [`event ${at}: sealStatus is unknown`, null, beside(at, { sealStatus: "Archived" })]),
  ["event 3: sealStatus is Pending", 2, beside(3, { sealStatus: "Pending" })],
  ["event 4: sealStatus is unknown", 4, beside(4, { sealStatus: "Archived" })],
  ["event 4: sealStatus is in lower case", 4, beside(4, { sealStatus: "pending" })],
  ["event 4: sealStatus is missing", 4, beside(4, { sealStatus: undefined })],
  ["event 4: sealStatus is Sealed", 4, beside(4, { sealStatus: "Sealed" })],
];

/** Payloads in another form than the canonical one, or with other content. Their hashes and links are right. */
const PAYLOADS: Row[] = [
  ...["1e0", "1.0", "10e-1", '"1"', "true", "[1]", "null", "2", "01", "1 "].map(
    (said): Row => [`payload: sequence is ${said}`, 1, reword('"sequence":1', `"sequence":${said}`)],
  ),
  ...["2", "1.0", '"1"', "null"].map((said): Row => [`payload: v is ${said}`, 1, reword('"v":1', `"v":${said}`)]),
  ["payload: v is missing", 1, reword(',"v":1', "")],
  ["payload: sequence is missing", 1, reword('"sequence":1,', "")],
  ["payload: actorIsEmployee is missing", 1, reword('"actorIsEmployee":null,', "")],
  ["payload: actorIsEmployee is false", 1, reword('"actorIsEmployee":null', '"actorIsEmployee":false')],
  ["payload: entityType is another", 1, reword('"VoucherInstance"', '"Voucher"')],
  ["payload: entityId is another", 1, reword('"entityId":"vch_', '"entityId":"vch_x')],
  ["payload: previousHash is null", 1, reword(/"previousHash":"0+"/, '"previousHash":null')],
  ["payload: code is another", 1, reword('"VCH001"', '"VCH002"')],
  [
    "payload: the event is of an unknown type",
    null,
    reword(/VCH001(.*)issued/, "VCH099$1moved", { code: "VCH099", eventType: "voucher.instance.moved" }),
  ],
  ["payload: an unknown member", null, reword('"v":1}', '"v":1,"zone":"x"}')],
  ["payload: a member twice, first with another value", 1, reword('"sequence":1', '"sequence":2,"sequence":1')],
  ["payload: a member twice, last with another value", 1, reword('"sequence":1', '"sequence":1,"sequence":2')],
  ["payload: a member twice, with the same value", 1, reword('"v":1', '"v":1,"v":1')],
  ["payload: a member of data twice", 1, reword('"data":{', '"data":{"audience":"x",')],
  [
    "payload: members in another order",
    1,
    payload(1, (text) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).reverse()))),
  ],
  ["payload: with white space", 1, payload(1, (text) => JSON.stringify(JSON.parse(text), null, 1))],
  ...Object.entries({
    "a byte order mark": "\ufeff",
    "a space": " ",
    "a line end": "\n",
    "CR and LF": "\r\n",
    "a zero": "\0",
  }).flatMap(([what, added]): Row[] => [
    [`payload: after ${what}`, 1, payload(1, (text) => added + text)],
    [`payload: before ${what}`, 1, payload(1, (text) => text + added)],
  ]),
  ["payload: twice", 1, payload(1, (text) => text + text)],
  ["payload: with a comma at its end", 1, reword('"v":1}', '"v":1,}')],
  ["payload: with a comment", 1, reword('"v":1}', '"v":1/**/}')],
  ["payload: with single quotes", 1, payload(1, (text) => text.replaceAll('"', "'"))],
  ...["", "{", "null", "true", "1", '"text"', "[]", "{}"].map(
    (text): Row => [`payload: ${text || "nothing"}`, 1, payload(1, () => text)],
  ),
  ...Object.entries({
    "a letter": "\\u0061",
    "a slash": "\\/",
    "a control character in upper case": "\\u001F",
    "a line end": "\\u000a",
    "half of a pair, the first": "\\ud800",
    "half of a pair, the second": "\\udc00",
    "a pair": "\\ud83d\\ude00",
  }).map(
    ([what, escaped]): Row => [`payload: an escape of ${what}`, 1, reword('"data":{', `"data":{"a":"${escaped}",`)],
  ),
  [
    "payload: text with every kind of escape that the canonical form has",
    null,
    reword('"data":{', '"data":{"a":"\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f/\u007f\u0085\u2028 <&>é😀",'),
  ],
  ...[
    "19.90",
    "1.99e1",
    "0.19e2",
    "-0",
    "0.0",
    "1E2",
    "1e400",
    "NaN",
    "Infinity",
    "0x10",
    ".5",
    "5.",
    "+5",
    "9007199254740993",
    "0.10000000000000001",
    "1e-06",
  ].map((written): Row => [`payload: the number ${written}`, 1, reword('"data":{', `"data":{"a":${written},`)]),
  ...["19.9", "-5", "0", "0.001", "9999999999.99", "999999999999999"].map(
    (written): Row => [`payload: the canonical number ${written}`, null, reword('"data":{', `"data":{"a":${written},`)],
  ),
];

/** Changes of the sequences that the third event names as erased. */
const ERASURES: Row[] = [
  ...["[2,2]", "[1,2]"].map((said): Row => [`erasedSequences: ${said}`, null, erase(`"erasedSequences":${said}`)]),
  ...["[]", "[1]", "[3]", "null", "2", '"2"', "[null]", '["2"]', "[[2]]", '{"0":2}', "[2.0]", "[2e0]", "true"].map(
    (said): Row => [`erasedSequences: ${said}`, 2, erase(`"erasedSequences":${said}`)],
  ),
  ...[
    "[2,3]",
    "[2,4]",
    "[2,0]",
    "[2,-1]",
    "[2,1.5]",
    "[2,null]",
    '[2,"1"]',
    "[2,true]",
    "[2,[1]]",
    "[2,{}]",
    "[2,999999999999999]",
  ].map((said): Row => [`erasedSequences: ${said}`, 3, erase(`"erasedSequences":${said}`)]),
  ["erasedSequences: missing", 2, erase('"erased":[2]')],
  ["erasedSequences: twice", 2, erase('"erasedSequences":[1],"erasedSequences":[2]')],
  [
    "erasedSequences: outside of data",
    2,
    payload(3, (text) =>
      text.replace(/"data":\{.*?\},/, '"data":{},').replace(/"eventType/, '"erasedSequences":[2],"eventType'),
    ),
  ],
  ...["null", "[]", "[2]", '"data"'].map(
    (data): Row => [
      `erasedSequences: data is ${data}`,
      2,
      payload(3, (text) => text.replace(/"data":\{.*?\},/, `"data":${data},`)),
    ],
  ),
  ["erasedSequences: in a payload with a line end after it", 2, payload(3, (text) => `${text}\n`)],
  ["erasedSequences: in a payload after a byte order mark", 2, payload(3, (text) => `\ufeff${text}`)],
  [
    "erasedSequences: null, and no payload is missing",
    2,
    (events, history) => {
      events.splice(1, 1);
      payload(2, (text) => text.replace("[2]", "null").replace('"sequence":3', '"sequence":2'))(events, history);
      Object.assign(events[1] ?? {}, { sequence: 2 });
    },
  ],
];

/** Changes of the list of events, and of the history's other members. */
const LISTS: Row[] = [
  ["the base without a change", null, () => undefined],
  ["no events", null, () => []],
  ["an event is null", 1, ([, ...events]) => [null, ...events]],
  ["an event is a number", 1, ([, ...events]) => [1, ...events]],
  ["an event is a list", 1, ([, ...events]) => [[], ...events]],
  ["the last event is text", 5, (events) => [...events, "event"]],
  ["the events are in reverse", 1, (events) => events.toReversed()],
  ["an event is missing", 2, (events) => events.toSpliced(1, 1)],
  ["an event appears twice", 2, ([first, ...events]) => [first, first, ...events]],
  ["the history is of another voucher", 1, (_, history) => void Object.assign(history, { entityId: "vch_other" })],
  ["the history names no voucher", 1, (_, history) => void delete history.entityId],
  [
    "the history names a voucher in a list",
    1,
    (_, history) => void Object.assign(history, { entityId: [history.entityId] }),
  ],
];

/** All rows, by the length of the history that each row changes. */
const ROWS: [length: number, rows: Row[]][] = [
  [4, LISTS],
  [1, BESIDE_SEALED],
  [4, BESIDE_OTHERS],
  [1, PAYLOADS],
  [3, ERASURES],
];

/** Changes the published history that has an erased event and a Pending event after it, in each of the ways above. */
export function makeHostileVectors(chains: readonly VectorChain[]): HostileVector[] {
  const {
    entityType,
    entityId,
    events = [],
  } = chains.find((chain) => chain.events.length === 3 && chain.events[1]?.erasedBy === 3) ?? {};
  const pending = chains.flatMap((chain) => chain.events).find(({ sealStatus }) => sealStatus === "Pending");
  const make = (length: number, [name, brokenAt, change]: Row): HostileVector => {
    const history: Event = { entityType, entityId };
    const changing = structuredClone([...events, { ...pending, sequence: 4 }].slice(0, length)) as Event[];
    const changed = change(changing, history) ?? changing;
    const verdict = brokenAt === null ? { intact: true as const } : { intact: false as const, sequence: brokenAt };
    return { name, history: JSON.stringify({ ...history, events: changed }), verdict };
  };
  return ROWS.flatMap(([length, rows]) => rows.map((row) => make(length, row)));
}
