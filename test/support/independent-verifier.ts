import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

/** An event as the partner endpoint serves it. Optional members are compared only if present. */
export interface ServedEvent {
  sequence: number;
  eventType: string;
  recordHash: string | null;
  previousHash: string | null;
  payload: string | null;
  sealStatus: string;
  code?: string;
  occurredAt?: string;
  actorConnectedId?: string | null;
  actorIsEmployee?: boolean | null;
  erasedBy?: number | null;
}

const ERASING = "voucher.instance.erased";
const BESIDE = ["sequence", "code", "occurredAt", "actorConnectedId", "actorIsEmployee"] as const;

/** Verifies a served chain by docs/history.md, without code of the service. Returns the first error, or null. */
export function verifyServedChain(events: readonly ServedEvent[], voucherId?: string): string | null {
  let expected = "0".repeat(64);
  let afterPending = false;
  const named = events.map((event) => (event.sealStatus === "Pending" ? null : readErased(event)));
  for (const [index, event] of events.entries()) {
    const position = index + 1;
    if (event.sequence !== position) return `position ${position} holds sequence ${event.sequence}`;
    if (event.sealStatus === "Pending") {
      if (event.payload !== null || event.recordHash !== null || event.previousHash !== null)
        return `event ${position} is pending and has a part of a seal`;
      afterPending = true;
      continue;
    }
    if (afterPending) return `event ${position} is sealed after a pending one`;
    const problem = event.payload === null ? findLoss(event, named) : findChange(event, voucherId);
    if (event.previousHash !== expected && !/^(hashes|lost|has no hash)/.test(problem ?? ""))
      return `event ${position} does not follow event ${position - 1}`;
    if (problem !== null) return `event ${position} ${problem}`;
    expected = String(event.recordHash);
  }
  return null;
}

/** The sequences that a sealed event's payload names as erased, or null for an event that erases nothing. */
function readErased({ eventType, payload }: ServedEvent): unknown {
  const said = eventType === ERASING ? parse(payload) : null;
  return said?.eventType === ERASING ? said.data?.erasedSequences : null;
}

function findLoss({ sequence, recordHash, erasedBy }: ServedEvent, named: readonly unknown[]): string | null {
  const names = (list: unknown, index: number) =>
    index >= sequence && Array.isArray(list) && list.includes(sequence) && index + 1 === (erasedBy ?? index + 1);
  if (!named.some(names)) return "lost its payload";
  return typeof recordHash === "string" && /^[0-9a-f]{64}$/.test(recordHash) ? null : "has no hash";
}

function findChange(event: ServedEvent, voucherId: string | undefined): string | null {
  const { sequence, payload, recordHash, previousHash, eventType } = event;
  const hash = typeof payload === "string" ? createHash("sha256").update(payload, "utf8").digest("hex") : "nothing";
  if (hash !== recordHash) return `hashes to ${hash}, not ${recordHash}`;
  const said = parse(payload);
  if (said?.previousHash !== previousHash) return "names another predecessor than its payload";
  if (said.eventType !== eventType) return "has another type than its payload";
  if (voucherId !== undefined && said.entityId !== voucherId) return "is of another voucher";
  if (said.v !== 1 || said.entityType !== "VoucherInstance") return "is not of a voucher";
  const differs = BESIDE.find((member) => event[member] !== undefined && said[member] !== event[member]);
  if (differs !== undefined) return `has another ${differs} than its payload`;
  if (eventType !== ERASING) return null;
  const named: unknown = said.data?.erasedSequences;
  const isEarlier = (erased: unknown) => Number.isInteger(erased) && Number(erased) > 0 && Number(erased) < sequence;
  return Array.isArray(named) && named.every(isEarlier) ? null : "erases what is not before it";
}

/** Parses a canonical payload. Returns null for other texts. */
function parse(payload: unknown) {
  try {
    const said = JSON.parse(String(payload));
    return canonicalize(said) === payload ? said : null;
  } catch {
    return null;
  }
}
