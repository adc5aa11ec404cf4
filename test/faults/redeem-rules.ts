import { type AskFor, type Exchange, type History, refOf } from "./history.ts";
import { endOf, type RecordedRedemption, type Records, seenUntil } from "./records.ts";
import type { SteppedClock } from "./stepped-clock.ts";
import type { Violation } from "./violation.ts";

type Redeem = Exchange<AskFor<"redeem">>;

/** Both clocks round to milliseconds. */
const ROUNDING_MS = 2;
/**
 * Longest time from sending a request to the service's first read: the API process and then Postgres are frozen (4.5 s each), the
 * statement waits for a connection (2 s), and the machine is busy. Milliseconds.
 */
const FIRST_READ_MAX_MS = 20_000;

/** Compares the answers to redeems with each other and with what the database contains at the end. */
export function checkRedeems(history: History, records: Records, redeemWaitMs: number): Violation[] {
  const byRef = Map.groupBy(history.of("redeem"), (exchange) => refOf(exchange.ask));
  const reserved = history.of("reserve").filter((reserve) => reserve.status === 200);
  const ticketOfToken = new Map(reserved.map(({ body }): [string, string] => [body.token, body.ticket]));
  return [
    ...[...byRef].flatMap(([ref, redeems]) => checkRef(ref, redeems, records)),
    ...history.of("redeem").flatMap((redeem) => checkRefusal(redeem, history, records, ticketOfToken)),
    ...[...records.redemptionsByRef].flatMap(([ref, redemption]) =>
      checkRedemptionWasRequested(ref, redemption, byRef.get(ref) ?? [], records, redeemWaitMs),
    ),
  ];
}

function checkRef(ref: string, redeems: readonly Redeem[], records: Records): Violation[] {
  const violations: Violation[] = [];
  const report = (rule: string, detail: string, exchanges: Redeem[]) =>
    void violations.push({ rule, detail: `${ref}: ${detail}`, exchanges });
  const confirmed = redeems.filter((redeem) => redeem.status === 200);
  const redemption = records.redemptionsByRef.get(ref);

  const first = confirmed.filter((redeem) => redeem.body?.alreadyConfirmed === false);
  if (first.length > 1) report("a reference is new once", "several answers call it new", first);

  for (const redeem of confirmed) {
    if (redemption === undefined || !agrees(redeem, redemption)) {
      const recorded = redemption === undefined ? "nothing" : JSON.stringify(redemption);
      report("a 200 stays true", `the database contains ${recorded}`, [redeem]);
    } else if (records.clock.first(redemption.redeemedAtMs) > redeem.endedAtMs + ROUNDING_MS) {
      report("a redemption is confirmed after it is decided", "the answer is older", [redeem]);
    }
  }

  const knownAtMs = Math.min(...confirmed.map((redeem) => redeem.endedAtMs));
  const refusedLater = redeems.filter(
    (redeem) => redeem.sentAtMs > knownAtMs && redeem.status !== 200 && saysNotRedeemed(redeem),
  );
  if (refusedLater.length > 0) report("a confirmed reference is confirmed", "a later retry was refused", refusedLater);

  const denied = redeems.filter((redeem) => redemption !== undefined && denies(redeem, redemption, records.clock));
  if (denied.length > 0) {
    const at = new Date(redemption?.redeemedAtMs ?? 0).toISOString();
    report("a denied redemption does not exist", `it was redeemed at ${at}`, denied);
  }
  return violations;
}

/** Whether an answer says that its attempt redeemed nothing. */
function saysNotRedeemed({ status, code }: Redeem): boolean {
  return status !== null && (status < 500 ? status !== 200 : code === "redeem_timeout");
}

/**
 * Whether an answer denies a redemption that was made before the answer was decided. It is decided after the request is sent, and reads
 * every redemption that was decided before.
 */
function denies(redeem: Redeem, redemption: RecordedRedemption, clock: SteppedClock): boolean {
  if (!saysNotRedeemed(redeem) || redeem.ask.voucher.id !== redemption.voucherId) return false;
  return clock.last(redemption.redeemedAtMs) <= redeem.sentAtMs - ROUNDING_MS;
}

/** Whether a call was ended: another call with its reference, sent after the call's first read, was told that nothing was redeemed. */
function isEnded(redeem: Redeem, redeems: readonly Redeem[]): boolean {
  return redeems.some(
    ({ status, code, sentAtMs }) =>
      redeem.status !== 200 &&
      (status === 409 || code === "redeem_timeout") &&
      sentAtMs > firstReadByMs(redeem) + ROUNDING_MS,
  );
}

/** An answered call was read before its answer; an abandoned one may be read later. */
function firstReadByMs({ status, sentAtMs, endedAtMs }: Redeem): number {
  return status === null ? sentAtMs + FIRST_READ_MAX_MS : endedAtMs;
}

function agrees({ body }: Redeem, redemption: RecordedRedemption): boolean {
  return (
    body?.redeemed === true &&
    body.voucherInstanceId === redemption.voucherId &&
    body.redeemCode === redemption.redeemCode &&
    Date.parse(body.redeemedAt) === redemption.redeemedAtMs
  );
}

/** A refusal is true if its reason held at some moment between the request and its answer. */
function checkRefusal(
  redeem: Redeem,
  history: History,
  records: Records,
  ticketOfToken: ReadonlyMap<string, string>,
): Violation[] {
  const { ask, code, sentAtMs, endedAtMs } = redeem;
  const { clock } = records;
  const refuse = (rule: string, detail: string): Violation[] => [{ rule, detail, exchanges: [redeem] }];
  const reservations = records.reservationsByVoucher.get(ask.voucher.id) ?? [];
  switch (code) {
    case "voucher_used": {
      const redemption = records.redemptionsByVoucher.get(ask.voucher.id);
      if (redemption === undefined || clock.first(redemption.redeemedAtMs) > endedAtMs + ROUNDING_MS)
        return refuse("used means redeemed", "the voucher was not redeemed by then");
      if (`${redemption.organizationId} ${redemption.externalRef}` === refOf(ask))
        return refuse("used means redeemed by another reference", "the same reference redeemed it");
      return [];
    }
    case "voucher_reserved": {
      const reservedByOther = reservations.some(
        (reservation) =>
          reservation.keyId !== ask.key.id &&
          clock.first(reservation.startedAtMs) <= endedAtMs + ROUNDING_MS &&
          seenUntil(reservation, records, history, sentAtMs) >= sentAtMs - ROUNDING_MS,
      );
      return reservedByOther ? [] : refuse("reserved means reserved by another key", "no other key had reserved it");
    }
    case "reservation_ended": {
      const reservation = "ticket" in ask.by ? records.reservationsByTicket.get(ask.by.ticket) : undefined;
      if (reservation === undefined) return refuse("only a reservation ends", "the ticket is missing or unknown");
      return clock.first(endOf(reservation)) <= endedAtMs + ROUNDING_MS
        ? []
        : refuse("an ended reservation has ended", "the reservation was live");
    }
    case "token_mismatch": {
      if (ask.token === null) return refuse("only a token mismatches", "no token was sent");
      const reservation = records.reservationsByTicket.get(ticketOfToken.get(ask.token) ?? "");
      if (reservation === undefined)
        return refuse("a token belongs to a reservation", "its reservation does not exist");
      return clock.first(endOf(reservation)) <= endedAtMs + ROUNDING_MS
        ? []
        : refuse("a valid token matches", "its reservation was live all the time");
    }
    default:
      return [];
  }
}

/**
 * Each redemption needs an attempt with the same key and the same code or ticket, within its deadline, whose answer does not deny it:
 * no refusal, no timeout, and no 200 that credits an earlier attempt.
 */
function checkRedemptionWasRequested(
  ref: string,
  redemption: RecordedRedemption,
  redeems: readonly Redeem[],
  records: Records,
  redeemWaitMs: number,
): Violation[] {
  const { clock } = records;
  const [fromMs, untilMs] = [clock.first(redemption.redeemedAtMs), clock.last(redemption.redeemedAtMs)];
  const attempts = redeems.filter(
    ({ ask, sentAtMs }) => ask.voucher.id === redemption.voucherId && sentAtMs <= untilMs + ROUNDING_MS,
  );
  const violations: Violation[] = [];
  const able = attempts.filter((redeem) => mayHaveRedeemed(redeem, redemption, clock, redeemWaitMs));
  const at = new Date(redemption.redeemedAtMs).toISOString();
  if (able.length === 0) {
    const detail = `${ref}: no attempt can have redeemed it at ${at}`;
    violations.push({ rule: "a redemption has an attempt", detail, exchanges: redeems });
  } else if (able.every((redeem) => isEnded(redeem, redeems))) {
    const detail = `${ref}: redeemed at ${at} by an attempt that was made before a refusal or timeout`;
    violations.push({ rule: "a refusal ends what came before", detail, exchanges: redeems });
  }
  const reservedByOther = (records.reservationsByVoucher.get(redemption.voucherId) ?? []).find(
    (reservation) =>
      clock.last(reservation.startedAtMs) <= fromMs &&
      clock.first(endOf(reservation)) > untilMs &&
      reservation.keyId !== redemption.keyId,
  );
  const consumed = redemption.ticket === null ? undefined : records.reservationsByTicket.get(redemption.ticket);
  if (reservedByOther !== undefined) {
    const detail = `${ref}: redeemed during ${reservedByOther.ticket}, the reservation of ${reservedByOther.keyId}`;
    violations.push({ rule: "a reservation keeps other keys out", detail, exchanges: attempts });
  }
  if (
    consumed !== undefined &&
    consumed.keyId !== redemption.keyId &&
    !attempts.some(({ ask }) => ask.token !== null)
  ) {
    const detail = `${ref}: another key's reservation ${consumed.ticket} was consumed without its token`;
    violations.push({ rule: "a reservation keeps other keys out", detail, exchanges: attempts });
  }
  return violations;
}

function mayHaveRedeemed(
  redeem: Redeem,
  redemption: RecordedRedemption,
  clock: SteppedClock,
  redeemWaitMs: number,
): boolean {
  const { ask, failure, body, sentAtMs } = redeem;
  if (failure === "refused" || saysNotRedeemed(redeem) || body?.alreadyConfirmed === true) return false;
  if (ask.key.id !== redemption.keyId || ("ticket" in ask.by && ask.by.ticket !== redemption.ticket)) return false;
  // While the clock has not passed the closed time after a step back, redemptions get that time, which may be after the deadline.
  const { redeemedAtMs } = redemption;
  if (clock.first(redeemedAtMs) < clock.last(redeemedAtMs)) return true;
  return redeemedAtMs <= clock.latestShown(sentAtMs, firstReadByMs(redeem)) + redeemWaitMs + ROUNDING_MS;
}
