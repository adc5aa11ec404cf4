import fc from "fast-check";
import { expect, it } from "vitest";
import { ORPHAN_AFTER_MS } from "../../../src/core/reserve/lease.ts";
import type { PartnerClient, Reply } from "../../support/client.ts";
import {
  countWaiting,
  LOCK_WAIT_MS,
  untilPast,
  untilWaitingOr,
  whileLocked,
} from "../../support/outside-transaction.ts";
import { findBatchOf, readRecorded, readReservation } from "../../support/recorded.ts";
import { countJobs } from "../../support/redeem-jobs.ts";
import { issueVouchers, provisioning } from "../../support/supply.ts";
import { inTime, until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { voidVoucher } from "../../support/void-voucher.ts";

// `holder` makes the reservations, and `rival` is another key of the same organization. Each has a client at each API.
const { servers, partner, tills: holder, rivals: rival } = useService({ apis: [{}, {}], workers: [{}, {}] });

/** One voucher in one race. `ticket` and `token` belong to its first reservation, and are empty without one. */
interface Round {
  id: string;
  code: string;
  ticket: string;
  token: string;
}

/** One side of a race: calls its API and returns the answer's outcome. */
type Action = (round: Round, side: 0 | 1) => Promise<string>;

/** The number of concurrent rounds of one race, each on its own voucher. */
const ROUNDS_AT_ONCE = 10;

/** The seed is fixed, so that a failure can be repeated. */
const SEED = 20_260_118;

it("two keys with ticket and token redeem a reserved voucher once, and end the reservation", async () => {
  for (const round of await makeRounds(ROUNDS_AT_ONCE, true)) {
    const outcome = await Promise.all([redeemBy(holder, "ticket")(round, 0), redeemBy(rival, "token")(round, 1)]);
    expect(outcome.toSorted()).toEqual(["redeemed", "voucher_used"]);
    expect(await stateOf(round)).toBe("Redeemed, free, reservation consumed");
  }
});

/** Moves a reservation's end to `inMs` from now. Deletes its lease, because no lease outlives its reservation. */
async function endSoon(round: Round, inMs: number): Promise<Date> {
  await servers.redis.del(servers.leaseKey(round.id));
  const { rows } = await servers.db.query<{ expires_at: Date }>(
    `UPDATE reservations SET started_at = date_trunc('milliseconds', now()) - interval '900 seconds',
            expires_at = date_trunc('milliseconds', now()) + make_interval(secs => $2::float8 / 1000)
      WHERE ticket = $1 RETURNING expires_at`,
    [round.ticket, inMs],
  );
  return rows[0]?.expires_at as Date;
}

it.each([
  ["redeem", redeemBy(rival, "code")],
  ["reserve", reserveBy(rival)],
])("only the holder can redeem until a reservation ends, and then another key can %s", async (what, byOther) => {
  const delays = fc.sample(fc.tuple(fc.nat(25), fc.nat(40), fc.nat(40)), { seed: SEED, numRuns: ROUNDS_AT_ONCE });
  const rounds = await makeRounds(ROUNDS_AT_ONCE, true);
  await Promise.all(
    rounds.map(async (round, n) => {
      const [inMs, holderTurns, rivalTurns] = delays[n] as [number, number, number];
      const endsAt = await endSoon(round, inMs);
      const [ofHolder, ofRival] = await Promise.all([
        turns(holderTurns).then(() => redeemBy(holder, "ticket")(round, 0)),
        turns(rivalTurns).then(() => byOther(round, 1)),
      ]);
      const { redemption, liveTicket } = await readRecorded(servers.db, round.id);
      const reservation = await readReservation(servers.db, round.ticket);
      if (ofHolder === "redeemed") {
        expect(["voucher_reserved", "voucher_used"]).toContain(ofRival);
        expect(redemption?.ticket).toBe(round.ticket);
        expect(redemption?.redeemedAt.getTime()).toBeLessThan(endsAt.getTime());
        expect(reservation).toMatchObject({ state: "Consumed", endedAt: redemption?.redeemedAt });
      } else if (ofRival === "redeemed" || ofRival === "reserved") {
        expect(ofHolder).toMatch(what === "redeem" ? /^(reservation_ended|voucher_used)$/ : /^reservation_ended$/);
        const startedAt = liveTicket === null ? null : (await readReservation(servers.db, liveTicket)).startedAt;
        const at = what === "redeem" ? redemption?.redeemedAt : startedAt;
        expect(at?.getTime()).toBeGreaterThanOrEqual(endsAt.getTime());
        expect(redemption?.ticket ?? null).toBeNull();
        expect(reservation).toMatchObject({ state: "Expired", endedAt: endsAt });
      } else {
        expect([ofHolder, ofRival]).toEqual(["reservation_ended", "voucher_reserved"]);
      }
    }),
  );
});

async function endValiditySoon(round: Round): Promise<Date> {
  const { rows } = await servers.db.query<{ valid_until: Date }>(
    "UPDATE batches SET valid_until = now() + interval '20 milliseconds' WHERE id = $1 RETURNING valid_until",
    [await findBatchOf(servers.db, round.id)],
  );
  return rows[0]?.valid_until as Date;
}

it.each([
  ["reservation refuses the holder's redeem", redeemBy(holder, "ticket"), "worker", "reservation_ended = Active, free"],
  ["reservation leaves nothing to release for a release", release, "api", "nothing = Active, kept"],
  ["voucher's validity refuses a redeem", redeemBy(holder, "code"), "worker", "voucher_expired = Active, free"],
  ["voucher's validity refuses a reserve", reserveBy(holder), "api", "voucher_expired = Active, free"],
] as const)("an end that passes during a lock wait counts: the end of a %s", async (title, action, role, expected) => {
  const isReserved = title.startsWith("reservation");
  const { round, done } = await until(async () => {
    const [round] = (await makeRounds(1, isReserved)) as [Round];
    const endDuring = async () => {
      const done = action(round, 0);
      if (!(await untilWaitingOr(done, servers.db, 1, role))) return null;
      await untilPast(servers.db, await (isReserved ? endSoon(round, 20) : endValiditySoon(round)));
      return { round, done };
    };
    return inTime(LOCK_WAIT_MS, () => whileLocked(servers.db, [round.id], endDuring));
  });
  expect(`${await done} = ${await stateOf(round)}`).toBe(expected);
});

type Race = ReturnType<typeof race>;

/** The races, each with its outcome if the left side locks the voucher's row first, then if the right side does. */
const RACES: Race[] = [
  race(
    "reserve against another key's redeem",
    "active",
    [reserveBy(holder), redeemBy(rival, "code")],
    "reserved + voucher_reserved = Active, reserved",
    "voucher_used + redeemed = Redeemed, free, nothing consumed",
  ),
  race(
    "reserve against the same key's redeem",
    "active",
    [reserveBy(holder), redeemBy(holder, "code")],
    "reserved + redeemed = Redeemed, free, reservation consumed",
    "voucher_used + redeemed = Redeemed, free, nothing consumed",
  ),
  race(
    "reserve against another key's reserve",
    "active",
    [reserveBy(holder), reserveBy(rival)],
    // The second call cannot tell from the first call's lease that there is a reservation.
    "reserved + 503 voucher_busy = Active, reserved",
    "503 voucher_busy + reserved = Active, reserved",
  ),
  race(
    "reserve against void",
    "active",
    [reserveBy(holder), voids],
    "reserved + voided = Voided, free",
    "voucher_voided + voided = Voided, free",
  ),
  race(
    "redeem against void",
    "active",
    [redeemBy(holder, "code"), voids],
    "redeemed + voucher_used = Redeemed, free, nothing consumed",
    "voucher_voided + voided = Voided, free",
  ),
  race(
    "redeem by ticket against release",
    "reserved",
    [redeemBy(holder, "ticket"), release],
    "redeemed + nothing = Redeemed, free, reservation consumed",
    "reservation_ended + released = Active, free",
  ),
  race(
    "the holder's redeem by code against release",
    "reserved",
    [redeemBy(holder, "code"), release],
    "redeemed + nothing = Redeemed, free, reservation consumed",
    "redeemed + released = Redeemed, free, nothing consumed",
  ),
  race(
    "another key's redeem with the token against release",
    "reserved",
    [redeemBy(rival, "token"), release],
    "redeemed + nothing = Redeemed, free, reservation consumed",
    "token_mismatch + released = Active, free",
  ),
  race(
    "another key's redeem without the token against release",
    "reserved",
    [redeemBy(rival, "code"), release],
    "voucher_reserved + released = Active, free",
    "voucher_reserved + released = Active, free",
  ),
  race(
    "the holder's repeated reserve against release",
    "reserved",
    [reserveBy(holder), release],
    "kept + released = Active, free",
    "kept + released = Active, free",
  ),
  race(
    "another key's reserve against release",
    "reserved",
    [reserveBy(rival), release],
    "voucher_reserved + released = Active, free",
    "voucher_reserved + released = Active, free",
  ),
  race(
    "release against release",
    "reserved",
    [release, release],
    "released + nothing = Active, free",
    "nothing + released = Active, free",
  ),
  race(
    "void of a reserved voucher against the holder's redeem",
    "reserved",
    [voids, redeemBy(holder, "ticket")],
    "voided + voucher_voided = Voided, free",
    "voucher_used + redeemed = Redeemed, free, reservation consumed",
  ),
  race(
    "void of a reserved voucher against release",
    "reserved",
    [voids, release],
    "voided + nothing = Voided, free",
    "voided + released = Voided, free",
  ),
  race(
    "void of a reserved voucher against the holder's repeated reserve",
    "reserved",
    [voids, reserveBy(holder)],
    "voided + kept = Voided, free",
    "voided + kept = Voided, free",
  ),
];

it.each(RACES)("$title: the transaction that locks the row first is decided first", async (race) => {
  expect(await until(() => runInOrder(race, "left", race.leftFirst))).toBe(race.leftFirst);
  expect(await until(() => runInOrder(race, "right", race.rightFirst))).toBe(race.rightFirst);
});

function at(tills: readonly PartnerClient[], side: 0 | 1): PartnerClient {
  return tills[side] as PartnerClient;
}

function reserveBy(tills: readonly PartnerClient[]): Action {
  return async (round, side) => {
    const reply = await at(tills, side).reserve(round.code);
    if (reply.status !== 200) return refusalOf(reply);
    return reply.body.ticket === round.ticket ? "kept" : "reserved";
  };
}

function redeemBy(tills: readonly PartnerClient[], by: "code" | "ticket" | "token"): Action {
  return async (round, side) => {
    const reply = await at(tills, side).redeem({
      [by === "ticket" ? "ticket" : "code"]: by === "ticket" ? round.ticket : round.code,
      token: by === "token" ? round.token : null,
      externalRef: `${round.id}-${side}`,
    });
    return reply.status === 200 ? "redeemed" : refusalOf(reply);
  };
}

async function release(round: Round, side: 0 | 1): Promise<string> {
  const reply = await at(rival, side).release(round.ticket);
  if (reply.status !== 200) return refusalOf(reply);
  return reply.body.released ? "released" : "nothing";
}

async function voids(round: Round): Promise<string> {
  try {
    await voidVoucher(provisioning(servers.db), partner.organizationId, round.code, null);
    return "voided";
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

function refusalOf({ status, body }: Reply): string {
  return status === 409 ? body.code : `${status} ${body.code}`;
}

async function stateOf(round: Round): Promise<string> {
  const { status, liveTicket, redemption } = await readRecorded(servers.db, round.id);
  const reservation = liveTicket === null ? "free" : liveTicket === round.ticket ? "kept" : "reserved";
  if (redemption === null) return `${status}, ${reservation}`;
  return `${status}, ${reservation}, ${redemption.ticket === null ? "nothing consumed" : "reservation consumed"}`;
}

/** Makes a race that starts with an Active or a reserved voucher. */
function race(
  title: string,
  starts: "active" | "reserved",
  [left, right]: [Action, Action],
  leftFirst: string,
  rightFirst: string,
) {
  return { title, startsReserved: starts === "reserved", left, right, leftFirst, rightFirst };
}

async function makeRounds(count: number, reserved: boolean): Promise<Round[]> {
  const vouchers = await issueVouchers(servers.db, partner, count);
  return Promise.all(
    vouchers.map(async ({ id, code }) => {
      if (!reserved) return { id, code, ticket: "", token: "" };
      const { body } = await until(async () => {
        const reply = await at(holder, 0).reserve(code);
        return reply.status === 200 ? reply : null;
      });
      return { id, code, ticket: body.ticket, token: body.token };
    }),
  );
}

/** Waits for this many turns of the event loop. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Starts both sides, `first` before the other, while a test transaction locks the row. Unlocks the row once both wait
 * or have ended. Returns null if this took over two seconds, as on a busy machine, and the outcome is not `expected`:
 * the lease of `first` is then too old to refuse the other side, and the wait for the row may have ended.
 */
async function runInOrder(race: Race, first: "left" | "right", expected: string): Promise<string | null> {
  const [round] = (await makeRounds(1, race.startsReserved)) as [Round];
  const startedAt = performance.now();
  let running = 0;
  const start = async (action: Action, side: 0 | 1) => {
    running += 1;
    return action(round, side).finally(() => {
      running -= 1;
    });
  };
  const untilStuck = () =>
    until(async () => {
      const [waiting, waitingWorkers, jobs] = await Promise.all([
        countWaiting(servers.db),
        countWaiting(servers.db, "worker"),
        countJobs(servers, "redeem"),
      ]);
      return waiting >= running && waitingWorkers >= jobs;
    });
  const { results } = await whileLocked(servers.db, [round.id], async () => {
    const results: Record<string, Promise<string>> = {};
    for (const side of first === "left" ? (["left", "right"] as const) : (["right", "left"] as const)) {
      results[side] = start(race[side], side === "left" ? 0 : 1);
      await untilStuck();
    }
    return { results };
  });
  const isQuick = performance.now() - startedAt < ORPHAN_AFTER_MS;
  const outcome = `${await results.left} + ${await results.right} = ${await stateOf(round)}`;
  return isQuick || outcome === expected ? outcome : null;
}
