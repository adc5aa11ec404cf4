import { describe, expect, it } from "vitest";
import {
  type Confirmation,
  decideRedeem,
  type RedeemAttempt,
  type RedeemDecision,
} from "../../../src/core/redeem/redeem.ts";
import { hashToken } from "../../../src/core/reserve/reservation-token.ts";
import { decideReservation, liveReservation, type Reservation } from "../../../src/core/voucher/reservation.ts";
import {
  hasFinalStatus,
  type StoredStatus,
  statusAt,
  type VoucherState,
  voucherRefusal,
} from "../../../src/core/voucher/voucher.ts";

const NOW = new Date("2027-03-01T12:00:00.000Z");

/** Moments relative to now, in milliseconds. */
const MOMENTS = { before: -1, at: 0, after: 1 } as const;
type Moment = keyof typeof MOMENTS;
const moments = Object.keys(MOMENTS) as Moment[];
const momentOf = (moment: Moment) => new Date(NOW.getTime() + MOMENTS[moment]);

/** The state in a row: its status, or that an Active voucher is suspended. */
type RowStatus = StoredStatus | "Suspended";
const statuses: RowStatus[] = ["Active", "Redeemed", "Voided", "Suspended"];

/** The voucher's Live reservation in each case: its owner, and its end relative to now. */
const HOLDS = {
  none: null,
  ownLive: { keyId: "key_caller", end: "after" },
  ownEndingNow: { keyId: "key_caller", end: "at" },
  ownPast: { keyId: "key_caller", end: "before" },
  foreignLive: { keyId: "key_other", end: "after" },
  foreignEndingNow: { keyId: "key_other", end: "at" },
  foreignPast: { keyId: "key_other", end: "before" },
} as const;
type ReservationCase = keyof typeof HOLDS;
const reservationCases = Object.keys(HOLDS) as ReservationCase[];
const isLive = (reservation: ReservationCase) => reservation === "ownLive" || reservation === "foreignLive";

const TICKET = "rsv_of_the_row";
const RIGHT_TOKEN = hashToken("the token of rsv_of_the_row");
const WRONG_TOKEN = hashToken("the token of some other hold");

type StatusCase = [stored: RowStatus, validUntil: Moment, read: string, refusal: string | null];

it.each<StatusCase>([
  ["Active", "before", "Expired", "voucher_expired"],
  ["Active", "at", "Expired", "voucher_expired"],
  ["Active", "after", "Active", null],
  ["Suspended", "before", "Expired", "voucher_expired"],
  ["Suspended", "at", "Expired", "voucher_expired"],
  ["Suspended", "after", "Suspended", "voucher_suspended"],
  ...moments.map((moment): StatusCase => ["Redeemed", moment, "Redeemed", "voucher_used"]),
  ...moments.map((moment): StatusCase => ["Voided", moment, "Voided", "voucher_voided"]),
])("a %s voucher with validUntil %s now reads %s and is refused with %s", (stored, validUntil, read, refusal) => {
  expect(statusAt(makeVoucher(stored, validUntil), NOW)).toBe(read);
  expect(voucherRefusal(makeVoucher(stored, validUntil), NOW)).toBe(refusal);
  expect(hasFinalStatus(makeVoucher(stored, validUntil))).toBe(stored === "Redeemed" || stored === "Voided");
});

it.each(reservationCases)("a reservation is live only until its end: %s", (reservationCase) => {
  const reservation = makeReservation(reservationCase);
  expect(liveReservation(reservation, NOW)).toBe(isLive(reservationCase) ? reservation : null);
});

describe("decideReservation", () => {
  const NAMINGS = { code: null, ticketOfTheRow: TICKET, otherTicket: "rsv_of_long_ago" } as const;
  type Naming = keyof typeof NAMINGS;
  const request = Object.freeze({
    ticket: "rsv_new",
    keyId: "key_caller",
    tokenSecretId: "fedc9876",
    seconds: 900,
  });

  /** Returns the documented outcome of a reserve call, in the order of refusals. */
  function promised(status: RowStatus, validUntil: Moment, reservationCase: ReservationCase, naming: Naming): object {
    if (status === "Redeemed") return { kind: "refused", code: "voucher_used" };
    if (status === "Voided") return { kind: "refused", code: "voucher_voided" };
    if (validUntil !== "after") return { kind: "refused", code: "voucher_expired" };
    if (status === "Suspended") return { kind: "refused", code: "voucher_suspended" };
    const namesLive = naming === "ticketOfTheRow" && isLive(reservationCase);
    if (naming !== "code" && !namesLive) return { kind: "refused", code: "reservation_ended" };
    switch (reservationCase) {
      case "ownLive":
        // A repeated reserve extends nothing: its answer has the same ticket, end and secret.
        return { kind: "repeated", reservation: makeReservation("ownLive") };
      case "foreignLive":
        return { kind: "refused", code: "voucher_reserved" };
      default:
        return {
          kind: "opened",
          reservation: {
            ticket: "rsv_new",
            keyId: "key_caller",
            tokenSecretId: "fedc9876",
            startedAt: NOW,
            expiresAt: new Date("2027-03-01T12:15:00.000Z"),
          },
        };
    }
  }

  it("decideReservation refuses in the documented order, for every state of voucher and reservation", () => {
    const namings = Object.keys(NAMINGS) as Naming[];
    const cases = combine({ status: statuses, validUntil: moments, reservation: reservationCases, naming: namings });
    expect(cases).toHaveLength(4 * 3 * 7 * 3);
    for (const { status, validUntil, reservation, naming } of cases) {
      const call = { ...request, namedTicket: NAMINGS[naming] };
      const outcome = decideReservation(makeVoucher(status, validUntil), makeReservation(reservation), call, NOW);
      expect(outcome, `${status}, validUntil ${validUntil}, ${reservation}, ${naming}`).toEqual(
        promised(status, validUntil, reservation, naming),
      );
    }
  });
});

describe("decideRedeem", () => {
  const CASES = combine({
    status: statuses,
    validUntil: moments,
    reservation: reservationCases,
    naming: ["code", "ticketOfTheRow", "otherTicket"] as const,
    token: ["none", "right", "wrong"] as const,
    confirmation: ["none", "ownAttempt", "otherAttempt"] as const,
    deadline: moments,
    isEnded: [false, true],
  });
  type Case = (typeof CASES)[number];

  const CONFIRMATIONS: Record<Case["confirmation"], Confirmation | null> = {
    none: null,
    ownAttempt: { attemptId: "attempt_this", redeemCode: "7Q4K-9MZX-2HTB", redeemedAt: momentOf("before") },
    otherAttempt: { attemptId: "attempt_other", redeemCode: "W8RC-7Q4K-9MZX", redeemedAt: momentOf("before") },
  };

  function decide(given: Case): RedeemDecision {
    const request: RedeemAttempt = Object.freeze({
      attemptId: "attempt_this",
      keyId: "key_caller",
      ticket: { code: null, ticketOfTheRow: TICKET, otherTicket: "rsv_of_long_ago" }[given.naming],
      tokenHash: { none: null, right: RIGHT_TOKEN, wrong: WRONG_TOKEN }[given.token],
      deadlineMs: momentOf(given.deadline).getTime(),
      isEnded: given.isEnded,
    });
    return decideRedeem(
      makeVoucher(given.status, given.validUntil),
      makeReservation(given.reservation),
      CONFIRMATIONS[given.confirmation],
      request,
      NOW,
      (reservation) => {
        expect(isLive(given.reservation), "a token is made for a live reservation only").toBe(true);
        return reservation.ticket === TICKET ? RIGHT_TOKEN : WRONG_TOKEN;
      },
    );
  }

  /** The documented order: the first matching line decides. */
  const ORDER: [applies: (given: Case) => boolean, decision: (given: Case) => RedeemDecision][] = [
    [
      (given) => given.confirmation === "ownAttempt",
      () => ({ kind: "redeemed_before", confirmation: CONFIRMATIONS.ownAttempt as Confirmation }),
    ],
    [(given) => given.confirmation === "otherAttempt", () => ({ kind: "confirmed" })],
    [(given) => given.isEnded, () => ({ kind: "late" })],
    [(given) => given.deadline === "before", () => ({ kind: "late" })],
    [(given) => given.status === "Redeemed", () => ({ kind: "refused", code: "voucher_used" })],
    [(given) => given.status === "Voided", () => ({ kind: "refused", code: "voucher_voided" })],
    [(given) => given.validUntil !== "after", () => ({ kind: "refused", code: "voucher_expired" })],
    [(given) => given.status === "Suspended", () => ({ kind: "refused", code: "voucher_suspended" })],
    // A given ticket must be the ticket of the live reservation.
    [(given) => given.naming === "otherTicket", () => ({ kind: "refused", code: "reservation_ended" })],
    [
      (given) => given.naming === "ticketOfTheRow" && !isLive(given.reservation),
      () => ({ kind: "refused", code: "reservation_ended" }),
    ],
    // A given token must match a live reservation, even from the holder.
    [(given) => given.token === "wrong", () => ({ kind: "refused", code: "token_mismatch" })],
    [
      (given) => given.token === "right" && !isLive(given.reservation),
      () => ({ kind: "refused", code: "token_mismatch" }),
    ],
    // The holder needs no token. Another key needs one, and a given token was checked above.
    [
      (given) => given.reservation === "foreignLive" && given.token === "none",
      () => ({ kind: "refused", code: "voucher_reserved" }),
    ],
    [
      () => true,
      (given) => ({ kind: "redeem", consumed: isLive(given.reservation) ? makeReservation(given.reservation) : null }),
    ],
  ];

  it("decideRedeem gives the documented answer for every combination of inputs", () => {
    expect(CASES).toHaveLength(4 * 3 * 7 * 3 * 3 * 3 * 3 * 2);
    for (const given of CASES) {
      const promised = ORDER.find(([applies]) => applies(given))?.[1](given);
      expect(decide(given), JSON.stringify(given)).toEqual(promised);
    }
  });

  it("the cases of decideRedeem cover every documented answer", () => {
    const firsts = CASES.map((given) => ORDER.findIndex(([applies]) => applies(given)));
    expect([...new Set(firsts)].sort((a, b) => a - b)).toEqual(ORDER.map((_, index) => index));
  });
});

function makeReservation(reservationCase: ReservationCase): Reservation | null {
  const shape = HOLDS[reservationCase];
  if (shape === null) return null;
  return Object.freeze({
    ticket: TICKET,
    keyId: shape.keyId,
    startedAt: new Date(NOW.getTime() - 60_000),
    expiresAt: momentOf(shape.end),
    tokenSecretId: "0123abcd",
  });
}

function makeVoucher(row: RowStatus, validUntil: Moment): VoucherState {
  const suspended = row === "Suspended";
  return Object.freeze({ status: suspended ? "Active" : row, validUntil: momentOf(validUntil), suspended });
}

/** Makes every combination of one value from each list. */
const combine = <Lists extends Record<string, readonly unknown[]>>(lists: Lists) =>
  Object.entries(lists).reduce<object[]>(
    (all, [name, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  ) as { [Name in keyof Lists]: Lists[Name][number] }[];
