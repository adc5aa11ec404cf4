import type { Exchange, History } from "./history.ts";
import type { Records } from "./records.ts";
import type { Violation } from "./violation.ts";

/** Times are rounded to milliseconds on both sides. */
const ROUNDING_MS = 2;
/** What each call may answer besides 200 to a partner whose requests are in order. */
const REFUSALS: Record<string, readonly string[]> = {
  redeem: ["voucher_used", "voucher_reserved", "reservation_ended", "token_mismatch"],
  reserve: ["voucher_used", "voucher_reserved"],
  release: [],
  lookUp: [],
  events: [],
};
const UNAVAILABLE = ["redeem_timeout", "redeem_unknown", "voucher_busy", "overloaded", "unavailable"];

/** What holds of every answer alone, and of look-ups against what the database says in the end. */
export function checkAnswers(history: History, records: Records): Violation[] {
  const violations: Violation[] = [];
  const burntForSureAtMs = new Map<string, number>();
  for (const { status, body, endedAtMs } of history.of("redeem")) {
    if (status !== 200) continue;
    const before = burntForSureAtMs.get(body.voucherInstanceId) ?? Number.POSITIVE_INFINITY;
    burntForSureAtMs.set(body.voucherInstanceId, Math.min(before, endedAtMs));
  }
  for (const exchange of history.exchanges) {
    const detail = checkForm(exchange);
    if (detail !== null)
      violations.push({ rule: "every answer is one that partners know", detail, exchanges: [exchange] });
  }
  for (const lookUp of history.of("lookUp")) {
    if (lookUp.status !== 200) continue;
    const detail = checkLookUp(lookUp, records, burntForSureAtMs.get(lookUp.ask.voucher.id));
    if (detail !== null) violations.push({ rule: "a look-up tells how it stands", detail, exchanges: [lookUp] });
  }
  for (const events of history.of("events")) {
    if (events.status === 200 && events.body.broken !== null)
      violations.push({ rule: "no chain is ever broken", detail: events.body.broken, exchanges: [events] });
  }
  return violations;
}

function checkForm({ ask, status, code, body, retryAfter }: Exchange): string | null {
  const foreign = ask.voucher.organizationId !== ask.key.organizationId;
  if (status === null) return null;
  if (body === undefined) return "the body is not JSON";
  if (status === 200) return foreign ? "a foreign voucher was answered" : null;
  if (status === 503) {
    if (code === undefined || !UNAVAILABLE.includes(code)) return `503 with the code ${code}`;
    return Number(retryAfter) >= 1 ? null : "503 without Retry-After";
  }
  if (foreign) return status === 404 && code === "voucher_not_found" ? null : "a foreign voucher is a 404";
  if (status === 409 && code !== undefined && REFUSALS[ask.operation]?.includes(code)) return null;
  return "nobody foresaw this answer";
}

function checkLookUp(lookUp: Exchange, records: Records, burntForSureAtMs: number | undefined): string | null {
  const { ask, body, sentAtMs, endedAtMs } = lookUp;
  const burn = records.burnsByVoucher.get(ask.voucher.id);
  if (body.id !== ask.voucher.id) return "it is another voucher";
  if (body.status === "Redeemed") {
    if (burn === undefined) return "it was never burnt";
    if (Date.parse(body.redeemedAt) !== burn.redeemedAtMs || burn.redeemedAtMs > endedAtMs + ROUNDING_MS)
      return "it was burnt at another time";
    return body.reservation === null ? null : "a used voucher is held";
  }
  if (body.status !== "Active") return `it cannot be ${body.status}`;
  if (burntForSureAtMs !== undefined && burntForSureAtMs < sentAtMs)
    return "it was burnt before, and somebody was told so";
  if (body.reservation === null) return null;
  const { ticket, startedAt, expiresAt, heldByCaller } = body.reservation;
  const hold = (records.holdsByVoucher.get(ask.voucher.id) ?? []).find(
    (candidate) => candidate.startedAtMs === Date.parse(startedAt) && candidate.expiresAtMs === Date.parse(expiresAt),
  );
  if (hold === undefined) return "there was no such hold";
  if (heldByCaller !== (hold.keyId === ask.key.id)) return "it is held by the other";
  return ticket === (heldByCaller ? hold.ticket : null) ? null : "it shows the wrong ticket";
}
