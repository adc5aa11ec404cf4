import type { components } from "./api.ts";

type Chain = Pick<components["schemas"]["Chain"], "entityId" | "events">;

/** The result of the check of a history. */
export type Verdict =
  /** Keep `headHash`: with it, a later check notices every change of the history up to here. */
  | { intact: true; sealed: number; pending: number; headHash: string | null }
  /** `sequence` is the position of the first bad event, from 1. */
  | { intact: false; sequence: number; reason: string };

const GENESIS_HASH = "0".repeat(64);

/**
 * Checks a whole history by the rules of the service's document "The sealed history of a voucher", without trusting the
 * service: each payload hashes to its `recordHash`, contains the hash before it, and says what the event beside it
 * says. A sealed event has no payload only if a later one says that it was erased.
 * @param keptHash A `headHash` of an earlier check, which must be in the history.
 */
export async function verifyHistory({ entityId, events }: Chain, keptHash?: string): Promise<Verdict> {
  let headHash: string | null = null;
  let sealed = 0;
  let isKept = keptHash === undefined;
  const erasures = events.flatMap((event, index) => listErasures(event, index + 1));
  for (const [index, event] of events.entries()) {
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
      if (!erasures.some(({ erased }) => erased === index + 1))
        return broken("The payload is missing, and no later event says that it was erased.");
      if (!/^[0-9a-f]{64}$/.test(String(recordHash))) return broken("The recordHash is not a hash.");
    } else if ((await sha256(payload)) !== recordHash) return broken("The payload has another hash.");
    if (erasures.some(({ by, erased }) => by === index + 1 && !(erased < by)))
      return broken("The event erases one that is not an earlier one.");
    const expected: Record<string, unknown> = {
      entityId,
      previousHash: headHash ?? GENESIS_HASH,
      sequence: event.sequence,
      eventType: event.eventType,
      code: event.code,
      occurredAt: event.occurredAt,
    };
    const said = payload === null ? expected : parseObject(payload);
    for (const [field, value] of Object.entries(expected)) {
      if (said[field] !== value) return broken(`The payload has another ${field}.`);
    }
    if (previousHash !== expected.previousHash) return broken("The event has another previousHash than its payload.");
    headHash = recordHash;
    sealed += 1;
    isKept ||= recordHash === keptHash;
  }
  const lost = "The hash that you kept is not in the history.";
  if (!isKept) return { intact: false, sequence: events.length, reason: lost };
  return { intact: true, sealed, pending: events.length - sealed, headHash };
}

/** Lists what a sealed event at a position says that it erased. An event that is not sealed yet proves nothing. */
function listErasures(event: Chain["events"][number], position: number): { by: number; erased: number }[] {
  if (event.sealStatus === "Pending" || event.eventType !== "voucher.instance.erased") return [];
  const { eventType, data } = parseObject(String(event.payload));
  if (eventType !== event.eventType) return [];
  const { erasedSequences } = Object(data);
  return Array.isArray(erasedSequences) ? erasedSequences.map((erased) => ({ by: position, erased })) : [];
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The object in a JSON text; an empty one when there is none. */
function parseObject(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
