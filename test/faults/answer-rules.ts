import type { AskFor, Exchange, History } from "./history.ts";
import type { Records } from "./records.ts";
import type { Violation } from "./violation.ts";

/** Both clocks round to milliseconds. */
const ROUNDING_MS = 2;
/** The refusals that each well-formed call may get. */
const REFUSALS: Record<string, readonly string[]> = {
  redeem: ["voucher_used", "voucher_reserved", "reservation_ended", "token_mismatch"],
  reserve: ["voucher_used", "voucher_reserved"],
  release: [],
  lookUp: [],
  events: [],
  acquire: ["sold_out"],
};
const UNAVAILABLE = ["redeem_timeout", "redeem_unknown", "voucher_busy", "overloaded", "unavailable"];

/** Checks each answer by itself, and look-ups and chains against what the database contains at the end. */
export function checkAnswers(history: History, records: Records): Violation[] {
  const violations: Violation[] = [];
  const confirmedAtMs = new Map<string, number>();
  for (const { status, body, endedAtMs } of history.of("redeem")) {
    if (status !== 200) continue;
    const before = confirmedAtMs.get(body.voucherInstanceId) ?? Number.POSITIVE_INFINITY;
    confirmedAtMs.set(body.voucherInstanceId, Math.min(before, endedAtMs));
  }
  for (const exchange of history.exchanges) {
    const detail = checkForm(exchange);
    if (detail !== null) violations.push({ rule: "every answer is documented", detail, exchanges: [exchange] });
  }
  for (const lookUp of history.of("lookUp")) {
    if (lookUp.status !== 200) continue;
    const detail = checkLookUp(lookUp, records, confirmedAtMs.get(lookUp.ask.voucher.id));
    if (detail !== null) violations.push({ rule: "a look-up shows the true state", detail, exchanges: [lookUp] });
  }
  for (const events of history.of("events")) {
    if (events.status === 200 && events.body.broken !== null)
      violations.push({ rule: "no chain is ever broken", detail: events.body.broken, exchanges: [events] });
  }
  return violations;
}

function checkForm({ ask, status, code, body, retryAfter }: Exchange): string | null {
  const foreign = ask.operation !== "acquire" && ask.voucher.organizationId !== ask.key.organizationId;
  if (status === null) return null;
  if (body === undefined) return "the body is not JSON";
  if (status === 200) return foreign ? "a foreign voucher was shown" : null;
  if (status === 503) {
    if (code === undefined || !UNAVAILABLE.includes(code)) return `503 with the code ${code}`;
    return Number(retryAfter) >= 1 ? null : "503 without Retry-After";
  }
  if (foreign) return status === 404 && code === "voucher_not_found" ? null : "a foreign voucher must answer 404";
  if (status === 409 && code !== undefined && REFUSALS[ask.operation]?.includes(code)) return null;
  return "the answer is not documented";
}

function checkLookUp(
  lookUp: Exchange<AskFor<"lookUp">>,
  records: Records,
  confirmedAtMs: number | undefined,
): string | null {
  const { ask, body, sentAtMs, endedAtMs } = lookUp;
  const redeem = records.redemptionsByVoucher.get(ask.voucher.id);
  if (body.id !== ask.voucher.id) return "it shows another voucher";
  if (body.status === "Redeemed") {
    if (redeem === undefined) return "the voucher was never redeemed";
    if (
      Date.parse(body.redeemedAt) !== redeem.redeemedAtMs ||
      records.clock.first(redeem.redeemedAtMs) > endedAtMs + ROUNDING_MS
    )
      return "the voucher was redeemed at another time";
    return body.reservation === null ? null : "a redeemed voucher is reserved";
  }
  if (body.status !== "Active") return `its status cannot be ${body.status}`;
  if (confirmedAtMs !== undefined && confirmedAtMs < sentAtMs) return "a redemption was confirmed before";
  if (body.reservation === null) return null;
  const { ticket, startedAt, expiresAt, heldByCaller } = body.reservation;
  const reservation = (records.reservationsByVoucher.get(ask.voucher.id) ?? []).find(
    (candidate) => candidate.startedAtMs === Date.parse(startedAt) && candidate.expiresAtMs === Date.parse(expiresAt),
  );
  if (reservation === undefined) return "there is no such reservation";
  if (heldByCaller !== (reservation.keyId === ask.key.id)) return "heldByCaller is wrong";
  return ticket === (heldByCaller ? reservation.ticket : null) ? null : "it shows the wrong ticket";
}
