import type { AskFor, Exchange, History } from "./history.ts";
import { endOf, type Records, seenUntil } from "./records.ts";
import type { Violation } from "./violation.ts";

/** Both clocks round to milliseconds. */
const ROUNDING_MS = 2;

/** Compares the answers to reserves and releases with what the database contains at the end. */
export function checkReservations(history: History, records: Records): Violation[] {
  return [...checkTickets(history, records), ...checkReleases(history.of("release"), records)];
}

function checkTickets(history: History, records: Records): Violation[] {
  const reserves = history.of("reserve");
  const { clock } = records;
  const violations: Violation[] = [];
  const report = (rule: string, detail: string, exchanges: Exchange[]) =>
    void violations.push({ rule, detail, exchanges });
  const byVoucher = Map.groupBy(reserves, (reserve) => reserve.ask.voucher.id);
  for (const reserve of reserves) {
    const { ask, body, sentAtMs, endedAtMs } = reserve;
    if (reserve.status === 200) {
      const reservation = records.reservationsByTicket.get(body.ticket);
      if (reservation === undefined) report("a ticket names a reservation", "there is no such reservation", [reserve]);
      else if (
        reservation.voucherId !== ask.voucher.id ||
        body.voucher !== ask.voucher.id ||
        reservation.keyId !== ask.key.id
      )
        report("a ticket names a reservation", "the reservation has another voucher or key", [reserve]);
      else if (Date.parse(body.expiresAt) !== reservation.expiresAtMs)
        report("a reservation ends at its expiresAt", `it ends at ${new Date(reservation.expiresAtMs).toISOString()}`, [
          reserve,
        ]);
      else if (
        clock.first(reservation.startedAtMs) > endedAtMs + ROUNDING_MS ||
        seenUntil(reservation, records, history, sentAtMs) < sentAtMs - ROUNDING_MS
      )
        report("a returned ticket is live", "the reservation was not live", [reserve]);
    }
    if (reserve.code === "voucher_used") {
      const redemption = records.redemptionsByVoucher.get(ask.voucher.id);
      if (redemption === undefined || clock.first(redemption.redeemedAtMs) > endedAtMs + ROUNDING_MS)
        report("used means redeemed", "the voucher was not redeemed by then", [reserve]);
    }
    if (reserve.code === "voucher_reserved") {
      // A lease without a reservation may refuse for a moment, but another key must have requested it.
      const others = (byVoucher.get(ask.voucher.id) ?? []).filter(
        (other) => other.ask.key.id !== ask.key.id && other.sentAtMs <= endedAtMs,
      );
      if (others.length === 0) report("reserved means reserved by another key", "no other key requested it", [reserve]);
    }
  }
  const confirmed = reserves.filter((reserve) => reserve.status === 200);
  for (const [ticket, answers] of Map.groupBy(confirmed, (reserve) => String(reserve.body.ticket))) {
    if (new Set(answers.map(({ body }) => body.token)).size > 1)
      report("a ticket has one token", `${ticket} came with several`, answers);
  }
  return violations;
}

function checkReleases(releases: readonly Exchange<AskFor<"release">>[], records: Records): Violation[] {
  const violations: Violation[] = [];
  const report = (rule: string, detail: string, exchanges: Exchange[]) =>
    void violations.push({ rule, detail, exchanges });
  const byTicket = Map.groupBy(releases, (release) => release.ask.ticket);
  for (const [ticket, answers] of byTicket) {
    const reservation = records.reservationsByTicket.get(ticket);
    const released = answers.filter(({ status, body }) => status === 200 && body.released === true);
    if (released.length > 1) report("a reservation is released once", `${ticket} was released twice`, released);
    if (released.length > 0 && reservation?.state !== "Released")
      report("a release stays true", `${ticket} is ${reservation?.state}`, released);
    for (const answer of answers.filter(({ status, body }) => status === 200 && body.released === false)) {
      if (reservation !== undefined && records.clock.first(endOf(reservation)) > answer.endedAtMs + ROUNDING_MS)
        report("nothing to release means no reservation", `${ticket} was live`, [answer]);
    }
  }
  for (const reservation of records.reservationsByTicket.values()) {
    if (reservation.state === "Released" && !byTicket.has(reservation.ticket))
      report("a release has a call", `no call released ${reservation.ticket}`, []);
  }
  return violations;
}
