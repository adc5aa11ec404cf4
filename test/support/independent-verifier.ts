import { createHash } from "node:crypto";

/** An event as the partner endpoint serves it. */
export interface ServedEvent {
  sequence: number;
  eventType: string;
  recordHash: string | null;
  previousHash: string | null;
  payload: string | null;
  sealStatus: string;
}

/**
 * Verifies a served chain according to the documentation, without code of the service. Returns the first error, or
 * null.
 */
export function verifyServedChain(events: readonly ServedEvent[], voucherId?: string): string | null {
  let expected = "0".repeat(64);
  let position = 0;
  let afterPending = false;
  const erasures: { by: number; erased: number }[] = [];
  for (const [index, { payload, eventType }] of events.entries()) {
    const said = payload === null || !payload.includes("voucher.instance.erased") ? null : parse(payload);
    if (said?.eventType === "voucher.instance.erased" && said.eventType === eventType)
      for (const erased of said.data.erasedSequences) erasures.push({ by: index + 1, erased });
  }
  for (const event of events) {
    position += 1;
    if (event.sequence !== position) return `position ${position} holds sequence ${event.sequence}`;
    if (event.sealStatus === "Pending") {
      if (event.payload !== null || event.recordHash !== null || event.previousHash !== null)
        return `event ${position} is pending and has a part of a seal`;
      afterPending = true;
      continue;
    }
    if (afterPending) return `event ${position} is sealed after a pending one`;
    const falselyErased = erasures.some(({ by, erased }) => by === position && erased >= by);
    if (falselyErased) return `event ${position} erases what is not before it`;
    if (event.payload === null) {
      if (!erasures.some(({ by, erased }) => erased === position && by > position))
        return `event ${position} lost its payload`;
      if (event.previousHash !== expected) return `event ${position} does not follow event ${position - 1}`;
      expected = String(event.recordHash);
      continue;
    }
    const hash = createHash("sha256").update(Buffer.from(event.payload, "utf8")).digest("hex");
    if (hash !== event.recordHash) return `event ${position} hashes to ${hash}, not ${event.recordHash}`;
    const { previousHash: inside, eventType, entityId } = JSON.parse(event.payload);
    if (inside !== event.previousHash) return `event ${position} names another predecessor than its payload`;
    if (inside !== expected) return `event ${position} does not follow event ${position - 1}`;
    if (eventType !== event.eventType) return `event ${position} has another type than its payload`;
    if (voucherId !== undefined && entityId !== voucherId) return `event ${position} is of another voucher`;
    expected = hash;
  }
  return null;
}

function parse(payload: string) {
  try {
    return JSON.parse(payload);
  } catch {
    return null;
  }
}
