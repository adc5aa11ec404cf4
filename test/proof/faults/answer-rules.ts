import { isFile } from "./files.ts";
import type { AskFor, Exchange, History, Violation } from "./history.ts";
import type { Records } from "./records.ts";
import { isConfirmed, openReport } from "./rules.ts";

const FINAL = ["voucher_used", "voucher_voided", "voucher_expired"];
/** The refusals that each valid call may get. */
const REFUSALS: Record<string, readonly string[]> = {
  redeem: [...FINAL, "voucher_suspended", "voucher_reserved", "reservation_ended", "token_mismatch"],
  reserve: [...FINAL, "voucher_suspended", "voucher_reserved"],
  suspend: ["voucher_used", "voucher_voided"],
  resume: ["voucher_used", "voucher_voided"],
  extend: ["voucher_used", "voucher_voided"],
  void: ["voucher_used", "voucher_expired"],
  acquire: ["sold_out"],
  endContract: ["wrong_status"],
};
const UNREDEEMED = "redemption_not_found";
/**
 * Only these operations and files may get `overloaded`. An issuer's acts have few connections, which faults block for
 * long, and a key may read only two files at a time. Other calls of partners are too few to overload a process: only
 * the flooder sends floods, and its calls are not judged here.
 */
const ACTS_ON_VOUCHERS = ["void", "suspend", "resume", "extend"];
const OVERLOADED: readonly string[] = [...ACTS_ON_VOUCHERS, "issue", "codes", "voidBatch", "endContract"];
const UNAVAILABLE = ["redeem_timeout", "redeem_unknown", "voucher_busy", "unavailable"];

/** Checks the form of each answer, and compares the reservations that look-ups show with the database at the end. */
export function checkAnswers(history: History, records: Records): Violation[] {
  const { violations, report } = openReport();
  for (const exchange of history.exchanges) {
    const detail = findFormFault(exchange);
    if (detail !== null) report("every answer is documented", detail, [exchange]);
  }
  for (const lookUp of history.of("lookUp").filter(isConfirmed)) {
    const detail = findLookUpFault(lookUp, records);
    if (detail !== null) report("a look-up shows a reservation of the voucher", detail, [lookUp]);
  }
  for (const events of history.of("events").filter(isConfirmed))
    if (events.body.broken !== null) report("no chain is ever broken", events.body.broken, [events]);
  return violations;
}

function findFormFault({ ask, status, code, body, retryAfter }: Exchange): string | null {
  const isForeign = "voucher" in ask && ask.voucher.organizationId !== ask.key.organizationId;
  if (status === null) return null;
  if (body === undefined) return "the body is not JSON";
  if (status === 200) return isForeign ? "a foreign voucher was shown" : null;
  if (status === 503) {
    const isKnown =
      UNAVAILABLE.includes(code ?? "") ||
      (code === "overloaded" && (OVERLOADED.includes(ask.operation) || isFile(ask)));
    if (!isKnown) return `503 with the code ${code}`;
    return Number(retryAfter) >= 1 ? null : "503 without Retry-After";
  }
  // `secret-ends.ts` judges when.
  if (status === 401 && code === "unknown_key") return null;
  if (isForeign) return status === 404 && code === "voucher_not_found" ? null : "a foreign voucher must answer 404";
  if (ask.operation === "redemption" && status === 404 && code === UNREDEEMED) return null;
  // The service refuses an extension to an end that is not later than the present one, or that has passed.
  if (status === 400 && code === "invalid_request" && ask.operation === "extend") return null;
  if (status === 429 && code === "cap_reached" && ask.operation === "redeem") return null;
  if (status === 409 && code !== undefined && REFUSALS[ask.operation]?.includes(code)) return null;
  return "the answer is not documented";
}

/** Checks a look-up's answer, except the voucher's status, which `voucher-register.ts` checks. */
function findLookUpFault({ ask, body }: Exchange<AskFor<"lookUp">>, records: Records): string | null {
  if (body.id !== ask.voucher.id) return "it shows another voucher";
  if (body.reservation === null) return null;
  const { ticket, startedAt, expiresAt, heldByCaller } = body.reservation;
  const reservation = (records.reservationsByVoucher.get(ask.voucher.id) ?? []).find(
    (candidate) => candidate.startedAtMs === Date.parse(startedAt) && candidate.expiresAtMs === Date.parse(expiresAt),
  );
  if (reservation === undefined) return "there is no such reservation";
  if (heldByCaller !== (reservation.keyId === ask.key.id)) return "heldByCaller is wrong";
  return ticket === (heldByCaller ? reservation.ticket : null) ? null : "it shows the wrong ticket";
}
