import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type EventType, GENESIS_HASH, sealEvent } from "../../src/core/chain/chain.ts";
import { makeHostileVectors } from "./hostile-vectors.ts";

/** The published file. Its texts, events and data are edited by hand, and the rest is generated from them. */
export const VECTORS_FILE = fileURLToPath(new URL("../../docs/chain-vectors.json", import.meta.url));

/** A verifier's finding. */
export type ChainFault =
  | "sequence"
  | "sealStatus"
  | "recordHash"
  | "previousHash"
  | "eventType"
  | "entityId"
  | "erased";

/** An event as the partner endpoint serves it. */
export interface VectorEvent {
  sequence: number;
  eventType: string;
  code: string;
  occurredAt: string;
  sealStatus: "Pending" | "Sealed";
  recordHash: string | null;
  previousHash: string | null;
  payload: string | null;
  actorConnectedId: string | null;
  actorIsEmployee: boolean | null;
  erasedBy?: number;
  erasedSequences?: number[];
}

export interface VectorChain {
  name: string;
  entityType: string;
  entityId: string;
  events: VectorEvent[];
}

export interface Vectors {
  about: string;
  findings: Record<ChainFault, string>;
  chains: VectorChain[];
  /** A broken chain, with the first finding and the position of its event, counted from 1. */
  broken: (VectorChain & { expected: { sequence: number; finding: ChainFault } })[];
  hostile: HostileVector[];
}

/** A history that was made to mislead a verifier, or that is unusual but valid. */
export interface HostileVector {
  name: string;
  /** The text of the answer. */
  history: string;
  verdict: { intact: true } | { intact: false; sequence: number };
}

/** Seals a chain's sealed events again. */
function seal({ entityId, events }: VectorChain, firstPreviousHash = GENESIS_HASH): VectorEvent[] {
  let previousHash = firstPreviousHash;
  return events.map((event) => {
    if (event.payload === null) {
      previousHash = event.recordHash ?? previousHash;
      return event;
    }
    const occurredAt = new Date(event.occurredAt);
    const { data } = JSON.parse(event.payload);
    const content = { ...event, voucherId: entityId, eventType: event.eventType as EventType, occurredAt, data };
    const sealed = { ...event, ...sealEvent(content, previousHash) };
    previousHash = sealed.recordHash;
    return sealed;
  });
}

function sha256(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** Changes one event. */
const change = (sequence: number, changed: (event: VectorEvent, chain: VectorChain) => Partial<VectorEvent>) => {
  return (chain: VectorChain) =>
    chain.events.map((event) => (event.sequence === sequence ? { ...event, ...changed(event, chain) } : event));
};
/** Changes the payload of one event, without hashing it again. */
const rewrite = (sequence: number, write: (payload: string) => string) =>
  change(sequence, ({ payload }) => ({ payload: write(String(payload)) }));
/** The seal columns of a Pending event. */
const PENDING = { sealStatus: "Pending", payload: null, recordHash: null, previousHash: null } as const;
/** Makes the event with this sequence Pending, and seals later events as if it did not exist. */
const hide = (sequence: number) => (chain: VectorChain) =>
  seal({ ...chain, events: change(sequence, () => PENDING)(chain) });
/** Makes the second of two events Pending, but with values in these fields, which a Pending event must not have. */
const halfSeal =
  (...fields: ("payload" | "recordHash" | "previousHash")[]) =>
  (chain: VectorChain) =>
    change(2, (event) => ({ ...PENDING, ...Object.fromEntries(fields.map((field) => [field, event[field]])) }))(chain);
/** Makes the third event erase these sequences, and seals it and the events after it again. */
const erase = (erasedSequences: number[]) => (chain: VectorChain) => {
  const events = change(3, ({ payload }) => {
    const said = JSON.parse(String(payload));
    return { erasedSequences, payload: JSON.stringify({ ...said, data: { ...said.data, erasedSequences } }) };
  })(chain);
  return seal({ ...chain, events });
};
/** Takes the events of these positions, counted from 0. */
const take =
  (...positions: number[]) =>
  ({ events }: VectorChain) =>
    positions.flatMap((position) => events[position] ?? []);

/** The id of another voucher. */
const OTHER_ID = "vch_01jzbq0000e00a4g0g0000006f";

/** How each broken chain is made from the valid chain of the same voucher. */
const BREAKS: Record<string, (chain: VectorChain) => VectorEvent[]> = {
  "a payload was changed by one character": rewrite(2, (payload) => payload.replace("user-ä-1", "user-ä-2")),
  "a note was changed in the last event": rewrite(2, (payload) => payload.replace("Tisch 4", "Tisch 5")),
  "a note was normalised to composed characters": rewrite(2, (payload) => payload.normalize("NFC")),
  "a payload was written again with white space": rewrite(1, (text) => JSON.stringify(JSON.parse(text), null, 1)),
  "a payload was written again with \\u escapes": rewrite(2, (payload) => payload.replace("ä", "\\u00e4")),
  "a payload was written again with its keys in another order": rewrite(3, (payload) =>
    JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(payload)).reverse())),
  ),
  "a recordHash is another event's": change(2, (_, { events }) => ({ recordHash: events[0]?.recordHash ?? null })),
  "an event was removed from the middle": take(0, 2),
  "the first event was removed": take(1, 2),
  "two events changed places": take(0, 2, 1),
  "an event appears twice": take(0, 1, 1, 2),
  "an event was removed from the middle and the next one renumbered": (chain) =>
    take(0, 2)(chain).map((event, place) => ({ ...event, sequence: place + 1 })),
  "an event was changed and hashed again, so that the next one does not follow it": change(2, ({ payload }) => {
    const forged = String(payload).replace('"referrer":null', '"referrer":"a friend"');
    return { payload: forged, recordHash: sha256(forged) };
  }),
  "an event was replaced by the same event of another voucher": change(2, (_, chain) => ({
    ...seal({ ...chain, entityId: OTHER_ID })[1],
  })),
  "the previousHash beside a payload was changed": change(2, () => ({ previousHash: GENESIS_HASH })),
  "the eventType beside a payload was changed": change(2, () => ({ eventType: "voucher.instance.bought" })),
  "an event is of the erasing type in its payload only": change(3, () => ({ eventType: "voucher.instance.voided" })),
  "an event is of the erasing type beside its payload only": (chain) => {
    const events = change(3, () => ({ eventType: "voucher.instance.voided" }))(chain);
    return change(3, () => ({ eventType: "voucher.instance.erased" }))({
      ...chain,
      events: seal({ ...chain, events }),
    });
  },
  "a payload was removed, and no event erases it": take(0, 1),
  "an event erases another event than the one without payload": erase([1]),
  "the event that erases another is Pending": (chain) =>
    change(3, () => PENDING)({ ...chain, events: take(0, 1, 2)(chain) }),
  "the event that erases another has no payload itself": change(3, () => ({ payload: null })),
  "an event erases itself": erase([2, 3]),
  "an event erases a later one": erase([2, 4]),
  "an event erases a later one, which a further event erases, too": (chain) => {
    const events = erase([2, 4])(chain);
    const lost = { ...chain.events[1], sequence: 4, previousHash: events[2]?.recordHash, erasedBy: 5 } as VectorEvent;
    return seal({ ...chain, events: [...events, lost, { ...erase([4])(chain)[2], sequence: 5 } as VectorEvent] });
  },
  "the erasing payload was changed": (chain) =>
    change(3, ({ payload }) => ({
      erasedSequences: [2],
      payload: String(payload).replace('"erasedSequences":[1]', '"erasedSequences":[2]'),
    }))({ ...chain, events: erase([1])(chain) }),
  "the recordHash of an erased event was changed": change(2, () => ({ recordHash: sha256("another event") })),
  "the first event follows something other than 64 zeros": (chain) =>
    seal(chain, sha256("some event before the first")),
  "all events are of another voucher": (chain) => seal({ ...chain, entityId: OTHER_ID }),
  "an event is of another voucher, and linked": (chain) => {
    const others = seal({ ...chain, entityId: OTHER_ID, events: take(1)(chain) }, chain.events[0]?.recordHash ?? "");
    return seal({ ...chain, events: take(2)(chain) }, others[0]?.recordHash ?? "").toSpliced(
      0,
      0,
      ...take(0)(chain),
      ...others,
    );
  },
  "a sealed event links past a Pending one": hide(2),
  "a sealed event follows 64 zeros, after a Pending first event": hide(1),
  "a sealed event follows one that was made Pending, and has its hash as the link": change(2, () => PENDING),
  "an event is Pending, although nothing else of its seal was removed": halfSeal(
    ...(["payload", "recordHash", "previousHash"] as const),
  ),
  "a Pending event has a payload": halfSeal("payload"),
  "a Pending event has a recordHash": halfSeal("recordHash"),
  "a Pending event has a previousHash": halfSeal("previousHash"),
  "an event is missing before a Pending one": (chain) =>
    change(3, () => PENDING)({ ...chain, events: take(0, 2)(chain) }),
  "a Pending event appears twice": (chain) => take(0, 1, 1)({ ...chain, events: change(2, () => PENDING)(chain) }),
};

/** Renders the file from its own texts and events. */
export function renderVectors(): string {
  const published: Vectors = JSON.parse(readFileSync(VECTORS_FILE, "utf8"));
  const chains = published.chains.map((chain) => ({ ...chain, events: seal(chain) }));
  const broken = published.broken.map((one) => {
    const good = chains.find(({ entityId }) => entityId === one.entityId);
    const make = BREAKS[one.name];
    if (good === undefined || make === undefined)
      throw new Error(`${one.name}: there is no such chain or no such break`);
    return { ...one, events: make(good) };
  });
  const text = JSON.stringify({ ...published, chains, broken, hostile: makeHostileVectors(chains) }, null, 2);
  // Writes lists of numbers on one line, as the project's formatter does.
  return `${text.replace(/\[\s+([\d,\s]+?)\s+\]/g, (_, list: string) => `[${list.replace(/\s+/g, " ")}]`)}\n`;
}

if (import.meta.main) writeFileSync(VECTORS_FILE, renderVectors());
