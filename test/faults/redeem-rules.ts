import { type AskFor, type Exchange, type History, refOf } from "./history.ts";
import { endOf, type RecordedBurn, type Records, seenUntil } from "./records.ts";
import type { Violation } from "./violation.ts";

type Redeem = Exchange<AskFor<"redeem">>;

/** Times are rounded to milliseconds on both sides. */
const ROUNDING_MS = 2;

/** What redeems were told, against each other and against what the database says in the end. */
export function checkRedeems(history: History, records: Records): Violation[] {
  const byRef = Map.groupBy(history.of("redeem"), (exchange) => refOf(exchange.ask));
  const given = history.of("reserve").filter((reserve) => reserve.status === 200);
  const ticketOfToken = new Map(given.map(({ body }): [string, string] => [body.token, body.ticket]));
  return [
    ...[...byRef].flatMap(([ref, redeems]) => checkRef(ref, redeems, records)),
    ...history.of("redeem").flatMap((redeem) => checkRefusal(redeem, history, records, ticketOfToken)),
    ...[...records.burnsByRef].flatMap(([ref, burn]) => checkBurnWasAskedFor(ref, burn, byRef.get(ref) ?? [], records)),
  ];
}

function checkRef(ref: string, redeems: readonly Redeem[], records: Records): Violation[] {
  const violations: Violation[] = [];
  const report = (rule: string, detail: string, exchanges: Redeem[]) =>
    void violations.push({ rule, detail: `${ref}: ${detail}`, exchanges });
  const confirmed = redeems.filter((redeem) => redeem.status === 200);
  const burn = records.burnsByRef.get(ref);

  const first = confirmed.filter((redeem) => redeem.body?.alreadyConfirmed === false);
  if (first.length > 1) report("a reference is new once", "several answers say that they burnt it", first);

  for (const redeem of confirmed) {
    if (burn === undefined || !agrees(redeem, burn)) {
      const stands = burn === undefined ? "nothing is burnt" : JSON.stringify(burn);
      report("a 200 stays true", `what was answered does not stand: ${stands}`, [redeem]);
    }
  }

  const knownAtMs = Math.min(...confirmed.map((redeem) => redeem.endedAtMs));
  const forgot = redeems.filter(
    (redeem) => redeem.sentAtMs > knownAtMs && redeem.status !== null && redeem.status !== 200 && redeem.status < 500,
  );
  if (forgot.length > 0) report("a confirmed reference is confirmed", "a later retry was refused", forgot);

  return violations;
}

function agrees({ body }: Redeem, burn: RecordedBurn): boolean {
  return (
    body?.redeemed === true &&
    body.voucherInstanceId === burn.voucherId &&
    body.redeemCode === burn.redeemCode &&
    Date.parse(body.redeemedAt) === burn.redeemedAtMs
  );
}

/** A refusal is true if the database shows that it was so at some moment between the request and its answer. */
function checkRefusal(
  redeem: Redeem,
  history: History,
  records: Records,
  ticketOfToken: ReadonlyMap<string, string>,
): Violation[] {
  const { ask, code, sentAtMs, endedAtMs } = redeem;
  const refuse = (rule: string, detail: string): Violation[] => [{ rule, detail, exchanges: [redeem] }];
  const holds = records.holdsByVoucher.get(ask.voucher.id) ?? [];
  switch (code) {
    case "voucher_used": {
      const burn = records.burnsByVoucher.get(ask.voucher.id);
      if (burn === undefined || burn.redeemedAtMs > endedAtMs + ROUNDING_MS)
        return refuse("used means burnt", "the voucher was not burnt by then");
      if (`${burn.organizationId} ${burn.externalRef}` === refOf(ask))
        return refuse("used means burnt by somebody else", "the reference itself burnt it");
      return [];
    }
    case "voucher_reserved": {
      const held = holds.some(
        (hold) =>
          hold.keyId !== ask.key.id &&
          hold.startedAtMs <= endedAtMs + ROUNDING_MS &&
          seenUntil(hold, history, sentAtMs) >= sentAtMs - ROUNDING_MS,
      );
      return held ? [] : refuse("reserved means held by another key", "nobody else held it");
    }
    case "reservation_ended": {
      const hold = "ticket" in ask.by ? records.holdsByTicket.get(ask.by.ticket) : undefined;
      if (hold === undefined) return refuse("only a hold ends", "no ticket was named, or an unknown one");
      return endOf(hold) <= endedAtMs + ROUNDING_MS ? [] : refuse("an ended reservation has ended", "it was live");
    }
    case "token_mismatch": {
      if (ask.token === null) return refuse("only a token mismatches", "no token was sent");
      const hold = records.holdsByTicket.get(ticketOfToken.get(ask.token) ?? "");
      if (hold === undefined) return refuse("a token is a hold's", "its hold is not there");
      return endOf(hold) <= endedAtMs + ROUNDING_MS ? [] : refuse("a good token fits", "its hold lived all the time");
    }
    default:
      return [];
  }
}

/**
 * Each burn comes from a request that did not say that nothing came of it. A refusal, and a timeout that says that nothing was
 * burned, speak for their own attempt: if they are all that was ever asked before the burn, one of them was untrue.
 */
function checkBurnWasAskedFor(
  ref: string,
  burn: RecordedBurn,
  redeems: readonly Redeem[],
  records: Records,
): Violation[] {
  const namedIt = redeems.filter(
    ({ ask, sentAtMs }) => ask.voucher.id === burn.voucherId && sentAtMs <= burn.redeemedAtMs + ROUNDING_MS,
  );
  const mayHaveBurnt = namedIt.filter(
    ({ status, code }) => status === null || status === 200 || (status >= 500 && code !== "redeem_timeout"),
  );
  const violations: Violation[] = [];
  if (mayHaveBurnt.length === 0) {
    const detail = `${ref}: burnt at ${new Date(burn.redeemedAtMs).toISOString()} although every request before that was told otherwise`;
    violations.push({ rule: "nothing was burned means nothing was burned", detail, exchanges: redeems });
  }
  const held = (records.holdsByVoucher.get(burn.voucherId) ?? []).find(
    (hold) => hold.startedAtMs <= burn.redeemedAtMs && endOf(hold) > burn.redeemedAtMs && hold.keyId !== burn.keyId,
  );
  const consumed = burn.ticket === null ? undefined : records.holdsByTicket.get(burn.ticket);
  if (held !== undefined) {
    const detail = `${ref}: burnt while ${held.keyId} held ${held.ticket}`;
    violations.push({ rule: "a hold keeps others out", detail, exchanges: namedIt });
  }
  if (consumed !== undefined && consumed.keyId !== burn.keyId && !namedIt.some(({ ask }) => ask.token !== null)) {
    const detail = `${ref}: another key's hold ${consumed.ticket} was consumed without its token`;
    violations.push({ rule: "a hold keeps others out", detail, exchanges: namedIt });
  }
  return violations;
}
