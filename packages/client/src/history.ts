import { parseCanonical } from "../../tlog/src/verify.ts";
import type { components } from "./api.ts";

type Chain = Pick<components["schemas"]["Chain"], "entityId" | "events">;

/** The result of checking a history. */
export type Verdict =
  /** Keep `headHash`. With it, a later check detects every change of the history up to this point. */
  | { intact: true; sealed: number; pending: number; headHash: string | null }
  /** `sequence` is the position of the first bad event, from 1. */
  | { intact: false; sequence: number; reason: string };

const GENESIS_HASH = "0".repeat(64);
const ERASING = "voucher.instance.erased";

/** A member that is missing in an event counts as null. */
const NOTHING = {
  eventType: null,
  code: null,
  occurredAt: null,
  recordHash: null,
  previousHash: null,
  payload: null,
  actorConnectedId: null,
  actorIsEmployee: null,
};

/**
 * Checks a whole history by the rules of the service's document "The sealed history of a voucher", without trusting the
 * service. Each payload must hash to its `recordHash`, contain the previous hash, and agree with the event's other
 * fields. If a sealed event has no payload, a later event must say that it was erased.
 * @param keptHash A `headHash` of an earlier check, which must occur in the history.
 */
export async function verifyHistory({ entityId, events }: Chain, keptHash?: string): Promise<Verdict> {
  let headHash: string | null = null;
  let sealed = 0;
  let isKept = keptHash === undefined;
  const erasures = events.flatMap((event, index) => listErasures(event, index + 1));
  for (const [index, served] of events.entries()) {
    const event: Chain["events"][number] = { ...NOTHING, ...Object(served) };
    const broken = (reason: string): Verdict => ({ intact: false, sequence: index + 1, reason });
    if (event.sequence !== index + 1) return broken("The sequence has a gap or a repetition.");
    const { payload, recordHash, previousHash } = event;
    if (event.sealStatus === "Pending") {
      if ([payload, recordHash, previousHash].some((part) => part !== null))
        return broken("The event is pending, but has a part of a seal.");
      continue;
    }
    if (sealed !== index) return broken("A sealed event follows a pending one.");
    if (payload === null) {
      if (!erasures.some(({ by, erased }) => erased === index + 1 && by === (event.erasedBy ?? by)))
        return broken("The payload is missing, and no later event says that it was erased.");
      if (typeof recordHash !== "string" || !/^[0-9a-f]{64}$/.test(recordHash))
        return broken("The recordHash is not a hash.");
    } else if (typeof payload !== "string" || (await sha256(payload)) !== recordHash)
      return broken("The payload has another hash.");
    const { actorConnectedId, actorIsEmployee } = event;
    const expected: Record<string, unknown> = {
      v: 1,
      entityType: "VoucherInstance",
      entityId,
      previousHash: headHash ?? GENESIS_HASH,
      sequence: event.sequence,
      eventType: event.eventType,
      code: event.code,
      occurredAt: event.occurredAt,
      actorConnectedId,
      actorIsEmployee,
    };
    const said = payload === null ? expected : parseCanonical(payload);
    if (said === null) return broken("The payload is not canonical JSON.");
    for (const [field, value] of Object.entries(expected)) {
      if (said[field] !== value) return broken(`The payload has another ${field}.`);
    }
    if (previousHash !== expected.previousHash) return broken("The event has another previousHash than its payload.");
    if (payload !== null && event.eventType === ERASING && !namesEarlier(said, index + 1))
      return broken("The event erases one that is not an earlier one.");
    headHash = recordHash;
    sealed += 1;
    isKept ||= recordHash === keptHash;
  }
  const lost = "The hash that you kept is not in the history.";
  if (!isKept) return { intact: false, sequence: events.length, reason: lost };
  return { intact: true, sealed, pending: events.length - sealed, headHash };
}

/** Lists the events that a sealed event claims to have erased. An event that is not sealed yet proves nothing. */
function listErasures(served: unknown, position: number): { by: number; erased: unknown }[] {
  const { sealStatus, eventType, payload } = Object(served);
  if (sealStatus === "Pending" || eventType !== ERASING) return [];
  const said = parseCanonical(String(payload));
  if (said?.eventType !== ERASING) return [];
  const { erasedSequences } = Object(said.data);
  return Array.isArray(erasedSequences) ? erasedSequences.map((erased) => ({ by: position, erased })) : [];
}

/** Whether the payload of an erasing event lists only earlier sequences. */
function namesEarlier({ data }: Record<string, unknown>, position: number): boolean {
  const { erasedSequences } = Object(data);
  return (
    Array.isArray(erasedSequences) &&
    erasedSequences.every((erased) => Number.isInteger(erased) && erased >= 1 && erased < position)
  );
}

/** The lower-case hex SHA-256 of a text. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
