import type { AskFor, Exchange, History } from "./history.ts";
import { endOf, type Records, seenUntil } from "./records.ts";
import type { Violation } from "./violation.ts";

/** Times are rounded to milliseconds on both sides. */
const ROUNDING_MS = 2;

/** What reserves and releases were told, against what the database says in the end. */
export function checkHolds(history: History, records: Records): Violation[] {
  return [...checkTickets(history, records), ...checkReleases(history.of("release"), records)];
}

function checkTickets(history: History, records: Records): Violation[] {
  const reserves = history.of("reserve");
  const violations: Violation[] = [];
  const report = (rule: string, detail: string, exchanges: Exchange[]) =>
    void violations.push({ rule, detail, exchanges });
  const byVoucher = Map.groupBy(reserves, (reserve) => reserve.ask.voucher.id);
  for (const reserve of reserves) {
    const { ask, body, sentAtMs, endedAtMs } = reserve;
    if (reserve.status === 200) {
      const hold = records.holdsByTicket.get(body.ticket);
      if (hold === undefined) report("a ticket is a hold", "there is no such hold", [reserve]);
      else if (hold.voucherId !== ask.voucher.id || body.voucher !== ask.voucher.id || hold.keyId !== ask.key.id)
        report("a ticket is a hold", "the hold is another voucher's or another key's", [reserve]);
      else if (Date.parse(body.expiresAt) !== hold.expiresAtMs)
        report("a hold ends when it was said to", `it ends at ${new Date(hold.expiresAtMs).toISOString()}`, [reserve]);
      else if (
        hold.startedAtMs > endedAtMs + ROUNDING_MS ||
        seenUntil(hold, history, sentAtMs) < sentAtMs - ROUNDING_MS
      )
        report("a ticket is live when it is given", "the hold was not live then", [reserve]);
    }
    if (reserve.code === "voucher_used") {
      const burn = records.burnsByVoucher.get(ask.voucher.id);
      if (burn === undefined || burn.redeemedAtMs > endedAtMs + ROUNDING_MS)
        report("used means burnt", "the voucher was not burnt by then", [reserve]);
    }
    if (reserve.code === "voucher_reserved") {
      // A lease without a hold may refuse for a moment; but somebody else must have asked for one.
      const others = (byVoucher.get(ask.voucher.id) ?? []).filter(
        (other) => other.ask.key.id !== ask.key.id && other.sentAtMs <= endedAtMs,
      );
      if (others.length === 0) report("reserved means held by another key", "nobody else asked for it", [reserve]);
    }
  }
  const given = reserves.filter((reserve) => reserve.status === 200);
  for (const [ticket, answers] of Map.groupBy(given, (reserve) => String(reserve.body.ticket))) {
    if (new Set(answers.map(({ body }) => body.token)).size > 1)
      report("a ticket has one token", `${ticket} was given with several`, answers);
  }
  return violations;
}

function checkReleases(releases: readonly Exchange<AskFor<"release">>[], records: Records): Violation[] {
  const violations: Violation[] = [];
  const report = (rule: string, detail: string, exchanges: Exchange[]) =>
    void violations.push({ rule, detail, exchanges });
  for (const [ticket, answers] of Map.groupBy(releases, (release) => release.ask.ticket)) {
    const hold = records.holdsByTicket.get(ticket);
    const released = answers.filter(({ status, body }) => status === 200 && body.released === true);
    if (released.length > 1) report("a hold is released once", `${ticket} was released twice`, released);
    if (released.length > 0 && hold?.state !== "Released")
      report("a release stays true", `${ticket} is ${hold?.state}`, released);
    for (const answer of answers.filter(({ status, body }) => status === 200 && body.released === false)) {
      if (hold !== undefined && endOf(hold) > answer.endedAtMs + ROUNDING_MS)
        report("nothing to release means no hold", `${ticket} was live`, [answer]);
    }
  }
  for (const hold of records.holdsByTicket.values()) {
    if (hold.state === "Released" && !releases.some(({ ask }) => ask.ticket === hold.ticket))
      report("a hold is released by those who have it", `nobody asked to release ${hold.ticket}`, []);
  }
  return violations;
}
