import { hash } from "node:crypto";
import canonicalize from "canonicalize";
import type { RandomBytes } from "./codes.ts";

/** The only entity type that has a chain. */
export const ENTITY_TYPE = "VoucherInstance";
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
} as const;
export type EventType = keyof typeof EVENT_CODES;

/** What an event says. `data` always carries a `nonce` of 128 random bits, so that a public hash gives no code away. */
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

/** Makes the nonce that every event's data carries. */
export function makeNonce(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(16)).toString("hex");
}

export interface Seal {
  previousHash: string;
  recordHash: string;
  payload: string;
}

/**
 * Seals an event behind `previousHash`: `payload` is the RFC 8785 (JCS) form of the event with its link, `recordHash` the
 * lower-case hex SHA-256 of the payload's UTF-8 bytes.
 * @throws Error on a lone surrogate or a number that JSON cannot hold; validate before sealing.
 */
export function sealEvent(event: EventContent, previousHash: string): Seal {
  const payload = canonicalize({
    v: 1,
    entityType: ENTITY_TYPE,
    entityId: event.voucherId,
    sequence: event.sequence,
    eventType: event.eventType,
    code: EVENT_CODES[event.eventType],
    occurredAt: event.occurredAt.toISOString(),
    previousHash,
    actorConnectedId: event.actorConnectedId,
    actorIsEmployee: event.actorIsEmployee,
    data: event.data,
  });
  if (payload === undefined) throw new Error("an event has no canonical form");
  return { previousHash, recordHash: hash("sha256", payload), payload };
}

/** An event as the database keeps it. The seal's three fields are null while the event is Pending. */
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
}

/** What the voucher's row says about its chain. */
export interface ChainHead {
  lastSequence: number;
  sealedSequence: number;
  sealedHash: string | null;
}

export interface ChainProblem {
  /** The event at which the chain breaks; for a head that does not fit, the sequence that the head names. */
  sequence: number;
  problem: string;
}

/**
 * Checks a voucher's whole chain, given in order of `sequence`, against itself and against the head that the voucher's row
 * keeps, which is what makes a cut tail visible. Returns the first problem, or null.
 */
export function verifyChain(voucherId: string, head: ChainHead, events: readonly StoredEvent[]): ChainProblem | null {
  let previousHash = GENESIS_HASH;
  let sealed = 0;
  for (const [index, event] of events.entries()) {
    const sequence = index + 1;
    if (event.sequence !== sequence) return { sequence, problem: `event ${sequence} is missing` };
    if (event.sealStatus === "Pending") continue;
    if (sealed !== index) return { sequence, problem: "sealed behind a pending event" };
    const problem = verifySealedEvent(voucherId, event, previousHash);
    if (problem !== null) return { sequence, problem };
    previousHash = event.recordHash as string;
    sealed = sequence;
  }
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
  if ((head.sealedHash ?? GENESIS_HASH) !== previousHash) {
    return { sequence: sealed, problem: "the voucher's sealed head is not the hash of the last sealed event" };
  }
  return null;
}

function verifySealedEvent(voucherId: string, event: StoredEvent, previousHash: string): string | null {
  if (event.payload === null) return "a sealed event has no payload";
  if (hash("sha256", event.payload) !== event.recordHash) return "recordHash is not the hash of the payload";
  if (event.previousHash !== previousHash) return "previousHash is not the hash of the event before";
  return saysWhatIsStored(voucherId, event, previousHash) ? null : findDifference(voucherId, event, previousHash);
}

/**
 * Whether a payload is what {@link sealEvent} makes of the stored event: around `data` the very characters, and between them the
 * canonical form (RFC 8785) of an object. What passes has no difference to find, and took a quarter less time than looking for one.
 */
function saysWhatIsStored(voucherId: string, event: StoredEvent, previousHash: string): boolean {
  const payload = event.payload as string;
  const { eventType, occurredAt, actorConnectedId, actorIsEmployee, sequence } = event;
  const code = EVENT_CODES[eventType as EventType];
  if (code === undefined) return false;
  const before =
    `{"actorConnectedId":${JSON.stringify(actorConnectedId)},"actorIsEmployee":${actorIsEmployee}` +
    `,"code":"${code}","data":`;
  const behind =
    `,"entityId":${JSON.stringify(voucherId)},"entityType":"${ENTITY_TYPE}","eventType":"${eventType}"` +
    `,"occurredAt":${JSON.stringify(new Date(occurredAt))},"previousHash":"${previousHash}","sequence":${sequence},"v":1}`;
  return (
    payload.startsWith(before) &&
    payload.endsWith(behind) &&
    isCanonicalObject(payload.slice(before.length, payload.length - behind.length))
  );
}

/**
 * Whether a text is the canonical form of a flat object. `JSON.stringify` writes numbers and strings in that form, being its model,
 * and keeps the order of keys.
 */
function isCanonicalObject(text: string): boolean {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return false;
  }
  if (typeof value !== "object" || value === null || JSON.stringify(value) !== text) return false;
  const members = Object.entries(value);
  return members.every(([key, member], index) => {
    const isFlat = typeof member !== "object" || member === null;
    return isFlat && key >= (members[index - 1]?.[0] ?? "");
  });
}

function findDifference(voucherId: string, event: StoredEvent, previousHash: string): string | null {
  const payload = event.payload as string;
  let said: Record<string, unknown>;
  try {
    said = JSON.parse(payload);
    if (canonicalize(said) !== payload) return "the payload is not in canonical form";
  } catch {
    return "the payload is not JSON";
  }
  if (said === null) return "the payload is not an object";
  const stored: Record<string, unknown> = {
    v: 1,
    entityType: ENTITY_TYPE,
    entityId: voucherId,
    sequence: event.sequence,
    eventType: event.eventType,
    code: EVENT_CODES[event.eventType as EventType],
    occurredAt: new Date(event.occurredAt).toJSON(),
    previousHash,
    actorConnectedId: event.actorConnectedId,
    actorIsEmployee: event.actorIsEmployee,
  };
  for (const [field, value] of Object.entries(stored)) {
    if (said[field] !== value) return `the payload's ${field} is not the stored one`;
  }
  return null;
}
