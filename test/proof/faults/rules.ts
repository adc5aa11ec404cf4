import { firstReadByMs, isEnded, type Redeem, saysNotCarriedOut, saysNotRedeemed } from "./attempts.ts";
import { acquisitionOf, type Exchange, type History, refOf, type Violation } from "./history.ts";
import { endOf, type RecordedRedemption, type Records } from "./records.ts";
import { ROUNDING_MS, type SteppedClock } from "./stepped-clock.ts";

// The rules that compare a run's answers with each other and with the database at the end.

/** A process notices a pause of this length, and then redeems nothing for requests that may be old. Milliseconds. */
const PAUSE_NOTICED_MS = 3_000;

/** A time range in which an API process was frozen. Milliseconds of the monotonic clock. */
export interface Freeze {
  fromMs: number;
  untilMs: number;
}

/** Whether a process was frozen from before the call until after the caller gave up, and noticed the freeze. */
function wasUnread({ failure, invokedMs, returnedMs }: Exchange, freezes: readonly Freeze[] = []): boolean {
  return (
    failure === "timeout" &&
    freezes.some(
      ({ fromMs, untilMs }) => fromMs < invokedMs && untilMs > returnedMs && untilMs - fromMs > PAUSE_NOTICED_MS,
    )
  );
}

/** Collects violations. */
export function openReport() {
  const violations: Violation[] = [];
  return {
    violations,
    report: (rule: string, detail: string, exchanges: readonly Exchange[]) =>
      void violations.push({ rule, detail, exchanges }),
  };
}

/** Whether the database's clock had certainly not reached a time when a call got its answer. */
export function isAfter(atMs: number, { endedAtMs }: Exchange, { clock }: Records): boolean {
  return clock.first(atMs) > endedAtMs + ROUNDING_MS;
}

export const isConfirmed = ({ status }: Exchange) => status === 200;

/** Checks the rules for redeems. `freezes` are the freezes of the API processes, by process name. */
export function checkRedeems(
  history: History,
  records: Records,
  redeemWaitMs: number,
  freezes: ReadonlyMap<string, readonly Freeze[]> = new Map(),
): Violation[] {
  const redeems = history.of("redeem");
  const unread = new Set(redeems.filter((redeem) => wasUnread(redeem, freezes.get(redeem.api))));
  const byRef = Map.groupBy(redeems, (redeem) => refOf(redeem.ask));
  return [
    ...[...byRef].flatMap(([ref, ofRef]) => checkRef(ref, ofRef, records)),
    ...[...records.redemptionsByRef].flatMap(([ref, redemption]) =>
      checkRedemptionWasRequested(ref, redemption, byRef.get(ref) ?? [], records, { redeemWaitMs, unread }),
    ),
  ];
}

function checkRef(ref: string, redeems: readonly Redeem[], records: Records): Violation[] {
  const { violations, report } = openReport();
  const redemption = records.redemptionsByRef.get(ref);
  const denied = redeems.filter((redeem) => redemption !== undefined && denies(redeem, redemption, records.clock));
  if (denied.length > 0) {
    const at = new Date(redemption?.redeemedAtMs ?? 0).toISOString();
    report("a denied redemption does not exist", `${ref}: it was redeemed at ${at}`, denied);
  }
  return violations;
}

/**
 * Whether an answer wrongly denies a redemption from before its request. The service must know every earlier
 * redemption.
 */
function denies(redeem: Redeem, redemption: RecordedRedemption, clock: SteppedClock): boolean {
  if (!saysNotRedeemed(redeem) || redeem.ask.voucher.id !== redemption.voucherId) return false;
  return clock.last(redemption.redeemedAtMs) <= redeem.sentAtMs - ROUNDING_MS;
}

/**
 * Checks that each redemption has an attempt with the same key and the same code or ticket, within its deadline. The
 * attempt must not have waited for a frozen process. Its answer must not deny the redemption: no refusal, no timeout,
 * and no 200 that credits an earlier attempt.
 */
function checkRedemptionWasRequested(
  ref: string,
  redemption: RecordedRedemption,
  redeems: readonly Redeem[],
  records: Records,
  { redeemWaitMs, unread }: { redeemWaitMs: number; unread: ReadonlySet<Redeem> },
): Violation[] {
  const { violations, report } = openReport();
  const { clock } = records;
  const [fromMs, untilMs] = [clock.first(redemption.redeemedAtMs), clock.last(redemption.redeemedAtMs)];
  const attempts = redeems.filter(
    ({ ask, sentAtMs }) => ask.voucher.id === redemption.voucherId && sentAtMs <= untilMs + ROUNDING_MS,
  );
  const able = attempts.filter(
    (redeem) => !unread.has(redeem) && mayHaveRedeemed(redeem, redemption, clock, redeemWaitMs),
  );
  const at = new Date(redemption.redeemedAtMs).toISOString();
  if (able.length === 0)
    report("a redemption has an attempt", `${ref}: no attempt can have redeemed it at ${at}`, redeems);
  else if (able.every((redeem) => isEnded(redeem, redeems)))
    report("a refusal ends what came before", `${ref}: redeemed at ${at} by an attempt before a refusal`, redeems);
  const reservedByOther = (records.reservationsByVoucher.get(redemption.voucherId) ?? []).find(
    (reservation) =>
      clock.last(reservation.startedAtMs) <= fromMs &&
      clock.first(endOf(reservation)) > untilMs &&
      reservation.keyId !== redemption.keyId,
  );
  const consumed = records.reservationsByTicket.get(redemption.ticket ?? "");
  const isForeign = consumed !== undefined && consumed.keyId !== redemption.keyId;
  const keepsOut = "a reservation keeps other keys out";
  if (reservedByOther !== undefined)
    report(keepsOut, `${ref}: redeemed during another key's reservation ${reservedByOther.ticket}`, attempts);
  if (isForeign && !attempts.some(({ ask }) => ask.token !== null))
    report(keepsOut, `${ref}: another key's reservation ${consumed.ticket} was consumed without its token`, attempts);
  return violations;
}

function mayHaveRedeemed(
  redeem: Redeem,
  { redeemedAtMs, keyId, ticket }: RecordedRedemption,
  clock: SteppedClock,
  redeemWaitMs: number,
): boolean {
  const { ask, failure, body, sentAtMs } = redeem;
  if (failure === "refused" || saysNotCarriedOut(redeem) || body?.alreadyConfirmed === true) return false;
  if (ask.key.id !== keyId || ("ticket" in ask.by && ask.by.ticket !== ticket)) return false;
  // After a step back, redemptions get the time in `closed_until` until the clock has passed it. That time may be after
  // the deadline.
  if (clock.first(redeemedAtMs) < clock.last(redeemedAtMs)) return true;
  return redeemedAtMs <= clock.latestShown(sentAtMs, firstReadByMs(redeem)) + redeemWaitMs + ROUNDING_MS;
}

/** Checks that no reservation was released without a call. */
export function checkReleases(history: History, records: Records): Violation[] {
  const { violations, report } = openReport();
  const released = new Set(history.of("release").map(({ ask }) => ask.ticket));
  const voided = new Set([
    ...history.of("void").map(({ ask }) => ask.voucher.id),
    ...history.of("voidBatch").flatMap(({ ask }) => ask.batch.vouchers.map(({ id }) => id)),
  ]);
  for (const { state, ticket, voucherId } of records.reservationsByTicket.values()) {
    if (state === "Released" && !released.has(ticket) && !voided.has(voucherId))
      report("a release has a call", `no call released ${ticket}`, []);
  }
  return violations;
}

/** Checks the rules for claims and purchases. */
export function checkAcquisitions(history: History, records: Records): Violation[] {
  const { violations, report } = openReport();
  const { clock } = records;
  const calls = history.of("acquire");
  const byAcquisition = Map.groupBy(calls, (call) => acquisitionOf(call.ask));
  const byBatch = Map.groupBy(records.acquisitions.values(), (acquisition) => acquisition.batchId);
  for (const [acquisition, answers] of byAcquisition) {
    const recorded = records.acquisitions.get(acquisition);
    const confirmed = answers.filter(isConfirmed);
    const first = confirmed.filter((call) => call.body.alreadyConfirmed === false);
    if (first.length > 1) report("an acquisition is new once", `${acquisition}: several answers call it new`, first);
    const denied = answers.filter(
      ({ status, sentAtMs }) =>
        status === 409 && recorded !== undefined && clock.last(recorded.acquiredAtMs) < sentAtMs - ROUNDING_MS,
    );
    if (denied.length > 0)
      report("a repeated acquisition is recognised", `${acquisition}: the repeat was refused`, denied);
  }
  for (const { acquisition, acquiredAtMs, voucherId } of records.acquisitions.values()) {
    const ofAcquisition = byAcquisition.get(acquisition) ?? [];
    const mayHaveAcquired = ofAcquisition.some(
      ({ status, failure, body, sentAtMs }) =>
        sentAtMs <= clock.last(acquiredAtMs) + ROUNDING_MS &&
        failure !== "refused" &&
        (status === null || status >= 500 || (status === 200 && body.alreadyConfirmed === false)),
    );
    const at = new Date(acquiredAtMs).toISOString();
    if (!mayHaveAcquired)
      report("an acquisition has a call", `${acquisition}: no call acquired ${voucherId} at ${at}`, ofAcquisition);
  }
  // No vouchers are added to an offer later, so "sold out" is true if no voucher is left when the answer arrives.
  for (const call of calls.filter(({ code }) => code === "sold_out")) {
    const { batchId, supply } = call.ask.offer;
    const acquired = byBatch.get(batchId) ?? [];
    const left = supply - acquired.filter(({ acquiredAtMs }) => !isAfter(acquiredAtMs, call, records)).length;
    if (left > 0) report("sold out means that nothing is left", `${left} vouchers of ${batchId} were left`, [call]);
  }
  for (const [batchId, supply] of new Map(calls.map(({ ask }) => [ask.offer.batchId, ask.offer.supply]))) {
    const vouchers = (byBatch.get(batchId) ?? []).map(({ voucherId }) => voucherId);
    const detail = `${batchId} had ${supply} vouchers and ${vouchers.length} acquisitions of ${new Set(vouchers).size}`;
    if (vouchers.length > supply || new Set(vouchers).size < vouchers.length)
      report("no voucher is acquired twice or beyond supply", detail, []);
  }
  return violations;
}
