import { hash } from "node:crypto";
import canonicalize from "canonicalize";
import type { RandomBytes } from "../../platform/base32.ts";
import { type ChainHead, ENTITY_TYPE } from "../voucher/voucher.ts";

export const ANCHOR_NAMESPACE = `${ENTITY_TYPE}:events`;
/** `previousHash` of a chain's first event. */
export const GENESIS_HASH = "0".repeat(64);

/** Every event type and its short code. */
export const EVENT_CODES = {
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
} as const;
export type EventType = keyof typeof EVENT_CODES;
export const EVENT_TYPES = Object.keys(EVENT_CODES) as [EventType, ...EventType[]];

/** An event's content. Without `data.nonce` (128 random bits), its public hash would confirm a guessed code. */
export interface EventContent {
  voucherId: string;
  sequence: number;
  eventType: EventType;
  /** Millisecond precision, as stored. */
  occurredAt: Date;
  actorConnectedId: string | null;
  actorIsEmployee: boolean | null;
  data: { nonce: string; [field: string]: unknown };
}

/**
 * Makes the next event of a locked voucher, without an actor. To `data`, adds a nonce, the voucher's code and serial
 * number, and `sandbox` if the voucher belongs to a sandbox.
 */
export function nextEvent(
  randomBytes: RandomBytes,
  voucher: { id: string; lastSequence: number; code: string; serial: number; sandbox: boolean },
  eventType: EventType,
  occurredAt: Date,
  data: Record<string, unknown>,
): EventContent {
  const { code: voucherCode, serial, sandbox } = voucher;
  return {
    voucherId: voucher.id,
    sequence: voucher.lastSequence + 1,
    eventType,
    occurredAt,
    actorConnectedId: null,
    actorIsEmployee: null,
    data: { nonce: makeNonce(randomBytes), voucherCode, serial, ...(sandbox && { sandbox }), ...data },
  };
}

/** Makes the nonce of an event: 128 random bits in hex. */
export function makeNonce(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(16)).toString("hex");
}

export interface Seal {
  previousHash: string;
  recordHash: string;
  payload: string;
}

/**
 * Seals an event whose predecessor in the chain has the hash `previousHash`. `payload` is the event together with this
 * hash, in RFC 8785 (JCS) form. `recordHash` is the lower-case hex SHA-256 of the payload's UTF-8 bytes.
 * @throws Error on a lone surrogate or a number that JSON cannot represent. Validate the content first.
 */
export function sealEvent(event: EventContent, previousHash: string): Seal {
  const fields = sealedFields(event, event.occurredAt.toISOString(), previousHash);
  // `canonicalize` returns undefined only for values that JSON omits. An object is never omitted.
  const payload = canonicalize({ ...fields, data: event.data }) as string;
  return { previousHash, recordHash: hash("sha256", payload), payload };
}

/** Returns the fields of a payload except `data`. */
function sealedFields(event: EventContent | StoredEvent, occurredAt: string | null, previousHash: string) {
  const { voucherId, sequence, eventType, actorConnectedId, actorIsEmployee } = event;
  const code = EVENT_CODES[eventType as EventType];
  const entity = { entityType: ENTITY_TYPE, entityId: voucherId };
  return { v: 1, ...entity, sequence, eventType, code, occurredAt, previousHash, actorConnectedId, actorIsEmployee };
}

/**
 * An event as the database stores it. While the event is Pending, `previousHash`, `recordHash` and `payload` are null.
 * An erased event has no payload, and `erasedBy` is the sequence of the event that erased it.
 */
export interface StoredEvent {
  voucherId: string;
  sequence: number;
  eventType: string;
  occurredAt: Date;
  sealStatus: "Pending" | "Sealed";
  actorConnectedId: string | null;
  actorIsEmployee: boolean | null;
  previousHash: string | null;
  recordHash: string | null;
  payload: string | null;
  erasedBy?: number | null;
}

/**
 * The sequences that an erasing event's payload lists. Empty for other events, for a Pending event, and for a payload
 * that is not canonical or has another event type.
 */
export function erasedSequencesOf(event: Pick<StoredEvent, "eventType" | "payload">): number[] {
  const erasedSequences = readErasedSequences(event);
  return Array.isArray(erasedSequences) ? erasedSequences : [];
}

function readErasedSequences({ eventType, payload }: Pick<StoredEvent, "eventType" | "payload">): unknown {
  if (eventType !== "voucher.instance.erased") return undefined;
  try {
    const said = JSON.parse(String(payload));
    return said.eventType === eventType && canonicalize(said) === payload ? said.data.erasedSequences : undefined;
  } catch {
    return undefined;
  }
}

/** The reason that an administrator gave for an event. Null if there is none, or no intact payload. */
export function reasonIn(payload: string | null): string | null {
  try {
    return String(JSON.parse(String(payload)).data.reason ?? "") || null;
  } catch {
    return null;
  }
}

/** Whether an event still has the payload that was sealed: not Pending, and neither erased nor changed. */
export function keepsPayload({ payload, recordHash }: Pick<StoredEvent, "payload" | "recordHash">): boolean {
  return payload !== null && hash("sha256", payload) === recordHash;
}

/** Whether a later sealed event of the same chain, with its payload intact, lists this event as erased. */
export function isErased(sequence: number, events: readonly StoredEvent[]): boolean {
  const later = events.filter((event) => event.sequence > sequence && keepsPayload(event));
  return later.some((event) => erasedSequencesOf(event).includes(sequence));
}

interface ChainProblem {
  /** The sequence of the event at which the chain breaks, or of the head in the voucher's row if the head is wrong. */
  sequence: number;
  problem: string;
}

/**
 * Verifies a voucher's whole chain, given in order of `sequence`: every hash, every link, and the head in the voucher's
 * row. Without the head, missing events at the end would not be found. Only the last events may be Pending, and a
 * Pending event must not have any field of a seal. If a sealed event has no payload, a later sealed event with an
 * intact payload must list its sequence as erased. Returns a problem, or null.
 */
export function verifyChain(voucherId: string, head: ChainHead, events: readonly StoredEvent[]): ChainProblem | null {
  let previousHash = GENESIS_HASH;
  let sealed = 0;
  const erasures = listErasures(events);
  for (const [index, event] of events.entries()) {
    const sequence = index + 1;
    if (event.sequence !== sequence) return { sequence, problem: `event ${sequence} is missing` };
    if (event.sealStatus === "Pending") {
      if (hasPartOfSeal(event)) return { sequence, problem: "pending, although it has a part of a seal" };
      continue;
    }
    if (sealed !== index) return { sequence, problem: "sealed after a pending event" };
    const problem = verifySealedEvent(voucherId, event, previousHash) ?? findFalseErasure(event, erasures);
    if (problem !== null) return { sequence, problem };
    previousHash = event.recordHash as string;
    sealed = sequence;
  }
  return findHeadProblem(head, events, sealed, previousHash);
}

function hasPartOfSeal({ payload, recordHash, previousHash }: StoredEvent): boolean {
  return [payload, recordHash, previousHash].some((part) => part !== null);
}

function findHeadProblem(
  head: ChainHead,
  events: readonly StoredEvent[],
  sealed: number,
  lastHash: string,
): ChainProblem | null {
  if (head.lastSequence !== events.length) {
    return {
      sequence: head.lastSequence,
      problem: `the voucher counts ${head.lastSequence} events, ${events.length} exist`,
    };
  }
  if (head.sealedSequence !== sealed) {
    return {
      sequence: head.sealedSequence,
      problem: `the voucher counts ${head.sealedSequence} sealed events, ${sealed} exist`,
    };
  }
  if ((head.sealedHash ?? GENESIS_HASH) !== lastHash) {
    return { sequence: sealed, problem: "the voucher's sealed head is not the hash of the last sealed event" };
  }
  return null;
}

function verifySealedEvent(voucherId: string, event: StoredEvent, previousHash: string): string | null {
  if (event.payload !== null && !keepsPayload(event)) return "recordHash is not the hash of the payload";
  if (!/^[0-9a-f]{64}$/.test(String(event.recordHash))) return "recordHash is not a hash";
  if (event.previousHash !== previousHash) return "previousHash is not the hash of the event before";
  return event.payload === null ? null : findDifference(voucherId, event, previousHash);
}

/** An erasing event, and one sequence that it lists as erased. */
interface Erasure {
  by: number;
  erased: number;
}

/** All sequences that the payloads of sealed events list as erased. {@link verifyChain} verifies these payloads. */
function listErasures(events: readonly StoredEvent[]): Erasure[] {
  const sealed = events.filter((event) => event.sealStatus !== "Pending");
  return sealed.flatMap((event) => erasedSequencesOf(event).map((erased) => ({ by: event.sequence, erased })));
}

/** Checks that a later event lists an event without payload, and that an erasing event lists only earlier events. */
function findFalseErasure(event: StoredEvent, erasures: readonly Erasure[]): string | null {
  const { sequence, eventType, payload, erasedBy } = event;
  const isEarlier = (erased: number) => Number.isInteger(erased) && erased >= 1 && erased < sequence;
  const named = readErasedSequences(event);
  if (payload !== null && eventType === "voucher.instance.erased" && !(Array.isArray(named) && named.every(isEarlier)))
    return "it erases an event that is not an earlier one";
  const names = ({ by, erased }: Erasure) => erased === sequence && by === (erasedBy ?? by);
  return payload !== null || erasures.some(names) ? null : "no later event says that the payload was erased";
}

/** Compares a payload, except `data`, with the stored event. Also checks the payload's canonical form. */
function findDifference(voucherId: string, event: StoredEvent, previousHash: string): string | null {
  const payload = event.payload as string;
  let sealed: Record<string, unknown>;
  try {
    sealed = JSON.parse(payload);
    if (canonicalize(sealed) !== payload) return "the payload is not in canonical form";
  } catch {
    return "the payload is not JSON";
  }
  if (sealed === null) return "the payload is not an object";
  // Postgres can store the time `infinity`, which `pg` reads as a number. `new Date` makes it an invalid date.
  const stored = sealedFields({ ...event, voucherId }, new Date(event.occurredAt).toJSON(), previousHash);
  for (const [field, value] of Object.entries(stored)) {
    // Skips a field whose value this release does not know, such as the code of an event type of a later release.
    if (value !== undefined && sealed[field] !== value) return `the payload's ${field} is not the stored one`;
  }
  return null;
}
