import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { voidVoucher } from "../../src/services/admin/void-voucher.ts";
import type { PartnerClient, Reply } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { countWaiting, untilPast, untilWaiting, whileLocked } from "../support/outside-transaction.ts";
import { findBatchOf, readRecorded, readReservation } from "../support/recorded.ts";
import { countJobs } from "../support/redeem-jobs.ts";
import { issueVouchers, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

// The key of `holder` makes the reservations; `rival` is another key of the same organization. Each has a client at each API.
const { servers, partner, tills: holder, rivals: rival } = useService({ apis: [{}, {}], workers: [{}, {}] });

/** One voucher in one race; `ticket` and `token` belong to its first reservation and are empty without one. */
interface Round {
  id: string;
  code: string;
  ticket: string;
  token: string;
}

/** One side of a race: makes a call at the API of its side and returns the outcome. */
type Action = (round: Round, side: 0 | 1) => Promise<string>;

const reserveBy =
  (tills: readonly PartnerClient[]): Action =>
  async (round, side) => {
    const reply = await at(tills, side).reserve(round.code);
    if (reply.status !== 200) return refusalOf(reply);
    return reply.body.ticket === round.ticket ? "kept" : "reserved";
  };

const redeemBy =
  (tills: readonly PartnerClient[], by: "code" | "ticket" | "token"): Action =>
  async (round, side) => {
    const reply = await at(tills, side).redeem({
      [by === "ticket" ? "ticket" : "code"]: by === "ticket" ? round.ticket : round.code,
      token: by === "token" ? round.token : null,
      externalRef: `${round.id}-${side}`,
    });
    return reply.status === 200 ? "redeemed" : refusalOf(reply);
  };

const release: Action = async (round, side) => {
  const reply = await at(rival, side).release(round.ticket);
  if (reply.status !== 200) return refusalOf(reply);
  return reply.body.released ? "released" : "nothing";
};

const voids: Action = async (round) => {
  try {
    await voidVoucher(provisioning(servers.db), partner.organizationId, round.code, null);
    return "voided";
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
};

const at = (tills: readonly PartnerClient[], side: 0 | 1) => tills[side] as PartnerClient;

function refusalOf({ status, body }: Reply): string {
  return status === 409 ? body.code : `${status} ${body.code}`;
}

/** Describes the state after a race. */
async function stateOf(round: Round): Promise<string> {
  const { status, liveTicket, redemption } = await readRecorded(servers.db, round.id);
  const reservation = liveTicket === null ? "free" : liveTicket === round.ticket ? "kept" : "reserved";
  if (redemption === null) return `${status}, ${reservation}`;
  return `${status}, ${reservation}, ${redemption.ticket === null ? "nothing consumed" : "reservation consumed"}`;
}

/** A race from a voucher that is Active or reserved; `orElse` is a further legal outcome when neither side waits for the row. */
function race(
  title: string,
  starts: "active" | "reserved",
  [left, right]: [Action, Action],
  leftFirst: string,
  rightFirst: string,
  orElse?: string,
) {
  return { title, startsReserved: starts === "reserved", left, right, leftFirst, rightFirst, orElse };
}
type Race = ReturnType<typeof race>;

/** The outcomes when the left side locks the voucher's row first, and when the right one does. */
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
    "reserved + voucher_reserved = Active, reserved",
    "voucher_reserved + reserved = Active, reserved",
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
    "redeemed + released = Redeemed, free, nothing consumed",
  ),
  race(
    "the holder's repeated reserve against release",
    "reserved",
    [reserveBy(holder), release],
    "kept + released = Active, free",
    "kept + released = Active, free",
    "reserved + released = Active, reserved",
  ),
  race(
    "another key's reserve against release",
    "reserved",
    [reserveBy(rival), release],
    "voucher_reserved + released = Active, free",
    "voucher_reserved + released = Active, free",
    "reserved + released = Active, reserved",
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
    "voided + voucher_voided = Voided, free",
  ),
];

/** Rounds of one race that run at the same time, each on a voucher of its own. */
const ROUNDS_AT_ONCE = 10;
const WAVES = 4;
/** Fixed, so that a failure can be repeated. */
const SEED = 20_260_118;

async function makeRounds(count: number, reserved: boolean): Promise<Round[]> {
  const vouchers = await issueVouchers(servers.db, partner, count);
  return Promise.all(
    vouchers.map(async ({ id, code }) => {
      if (!reserved) return { id, code, ticket: "", token: "" };
      const { body } = await at(holder, 0).reserve(code);
      return { id, code, ticket: body.ticket, token: body.token };
    }),
  );
}

/** Waits for this many turns of the event loop. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Starts both sides, `first` before the other, while a test transaction locks the row; unlocks it once both wait or are done. */
async function runInOrder(race: Race, round: Round, first: "left" | "right"): Promise<string> {
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
  return `${await results.left} + ${await results.right} = ${await stateOf(round)}`;
}

it.each(RACES)("$title: the first to lock the row is decided first", async (race) => {
  const [one, other] = (await makeRounds(2, race.startsReserved)) as [Round, Round];
  expect(await runInOrder(race, one, "left")).toBe(race.leftFirst);
  expect(await runInOrder(race, other, "right")).toBe(race.rightFirst);
  await assertInvariants(servers.db);
});

it.each(RACES)("$title: ends as if one had run after the other, with any timing", async (race) => {
  const legal = [race.leftFirst, race.rightFirst, race.orElse];
  const delays = fc.sample(fc.tuple(fc.nat(40), fc.nat(40)), { seed: SEED, numRuns: ROUNDS_AT_ONCE * WAVES });
  for (let wave = 0; wave < WAVES; wave++) {
    const rounds = await makeRounds(ROUNDS_AT_ONCE, race.startsReserved);
    const outcomes = await Promise.all(
      rounds.map(async (round, n) => {
        const [leftTurns, rightTurns] = delays[wave * ROUNDS_AT_ONCE + n] as [number, number];
        const [left, right] = await Promise.all([
          turns(leftTurns).then(() => race.left(round, 0)),
          turns(rightTurns).then(() => race.right(round, 1)),
        ]);
        return `${left} + ${right} = ${await stateOf(round)}`;
      }),
    );
    for (const outcome of outcomes) expect(legal).toContain(outcome);
    await assertInvariants(servers.db);
  }
});

it("redeem once and consume the reservation when one key has the ticket and the other the token", async () => {
  for (const round of await makeRounds(ROUNDS_AT_ONCE, true)) {
    const outcome = await Promise.all([redeemBy(holder, "ticket")(round, 0), redeemBy(rival, "token")(round, 1)]);
    expect(outcome.toSorted()).toEqual(["redeemed", "voucher_used"]);
    expect(await stateOf(round)).toBe("Redeemed, free, reservation consumed");
  }
  await assertInvariants(servers.db);
});

/** Moves a reservation's end to `inMs` milliseconds from now, and removes its lease, which never outlives a reservation. */
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

describe("the end of a reservation", () => {
  it("the end of a reservation is the moment until which only the holder, and from which only another key, can redeem", async () => {
    const delays = fc.sample(fc.tuple(fc.nat(25), fc.nat(40), fc.nat(40)), { seed: SEED, numRuns: 60 });
    for (let wave = 0; wave < 6; wave++) {
      const rounds = await makeRounds(10, true);
      await Promise.all(
        rounds.map(async (round, n) => {
          const [inMs, holderTurns, rivalTurns] = delays[wave * 10 + n] as [number, number, number];
          const endsAt = await endSoon(round, inMs);
          const [byTicket, byCode] = await Promise.all([
            turns(holderTurns).then(() => redeemBy(holder, "ticket")(round, 0)),
            turns(rivalTurns).then(() => redeemBy(rival, "code")(round, 1)),
          ]);
          const { redemption } = await readRecorded(servers.db, round.id);
          const reservation = await readReservation(servers.db, round.ticket);
          if (byTicket === "redeemed") {
            expect(["voucher_reserved", "voucher_used"]).toContain(byCode);
            expect(redemption?.ticket).toBe(round.ticket);
            expect(redemption?.redeemedAt.getTime()).toBeLessThan(endsAt.getTime());
            expect(reservation).toMatchObject({ state: "Consumed", endedAt: redemption?.redeemedAt });
          } else if (byCode === "redeemed") {
            expect(["reservation_ended", "voucher_used"]).toContain(byTicket);
            expect(redemption?.ticket).toBeNull();
            expect(redemption?.redeemedAt.getTime()).toBeGreaterThanOrEqual(endsAt.getTime());
            expect(reservation).toMatchObject({ state: "Expired", endedAt: endsAt });
          } else {
            expect([byTicket, byCode]).toEqual(["reservation_ended", "voucher_reserved"]);
          }
        }),
      );
      await assertInvariants(servers.db);
    }
  });

  it("the end of a reservation is the moment until which the holder can redeem, and from which another key can reserve", async () => {
    const delays = fc.sample(fc.tuple(fc.nat(25), fc.nat(40), fc.nat(40)), { seed: SEED + 1, numRuns: 60 });
    for (let wave = 0; wave < 6; wave++) {
      const rounds = await makeRounds(10, true);
      await Promise.all(
        rounds.map(async (round, n) => {
          const [inMs, holderTurns, rivalTurns] = delays[wave * 10 + n] as [number, number, number];
          const endsAt = await endSoon(round, inMs);
          const [redeem, reserve] = await Promise.all([
            turns(holderTurns).then(() => redeemBy(holder, "ticket")(round, 0)),
            turns(rivalTurns).then(() => reserveBy(rival)(round, 1)),
          ]);
          const { redemption, liveTicket } = await readRecorded(servers.db, round.id);
          if (redeem === "redeemed") {
            expect(["voucher_reserved", "voucher_used"]).toContain(reserve);
            expect(redemption?.redeemedAt.getTime()).toBeLessThan(endsAt.getTime());
          } else {
            expect(redeem).toBe("reservation_ended");
            expect(["reserved", "voucher_reserved"]).toContain(reserve);
          }
          if (reserve === "reserved") {
            const opened = await readReservation(servers.db, liveTicket as string);
            expect(opened.startedAt.getTime()).toBeGreaterThanOrEqual(endsAt.getTime());
            expect(await readReservation(servers.db, round.ticket)).toMatchObject({
              state: "Expired",
              endedAt: endsAt,
            });
          }
        }),
      );
      await assertInvariants(servers.db);
    }
  });

  it.each([
    {
      title: "refuses the holder's redeem",
      action: redeemBy(holder, "ticket"),
      role: "worker" as const,
      outcome: "reservation_ended",
      state: "Active, free",
    },
    {
      title: "allows another key's redeem",
      action: redeemBy(rival, "code"),
      role: "worker" as const,
      outcome: "redeemed",
      state: "Redeemed, free, nothing consumed",
    },
    {
      title: "leaves nothing to release for a release",
      action: release,
      role: "api" as const,
      outcome: "nothing",
      state: "Active, kept",
    },
  ])("$title that began to wait for the row before it", async ({ action, role, outcome, state }) => {
    const [round] = (await makeRounds(1, true)) as [Round];
    const { done } = await whileLocked(servers.db, [round.id], async () => {
      const done = action(round, 0);
      await untilWaiting(servers.db, 1, role);
      await untilPast(servers.db, await endSoon(round, 20));
      return { done };
    });
    expect(await done).toBe(outcome);
    expect(await stateOf(round)).toBe(state);
  });
});

describe("the end of a voucher's validity", () => {
  async function passValidity(voucherId: string): Promise<void> {
    const { rows } = await servers.db.query<{ valid_until: Date }>(
      "UPDATE batches SET valid_until = now() + interval '20 milliseconds' WHERE id = $1 RETURNING valid_until",
      [await findBatchOf(servers.db, voucherId)],
    );
    await untilPast(servers.db, rows[0]?.valid_until as Date);
  }

  it.each([
    { title: "redeem", action: redeemBy(holder, "code"), role: "worker" as const },
    { title: "reserve", action: reserveBy(holder), role: "api" as const },
  ])("the end of a voucher's validity refuses a $title that began to wait for the row before it", async ({
    action,
    role,
  }) => {
    const [round] = (await makeRounds(1, false)) as [Round];
    const { refused } = await whileLocked(servers.db, [round.id], async () => {
      const refused = action(round, 0);
      await untilWaiting(servers.db, 1, role);
      await passValidity(round.id);
      return { refused };
    });
    expect(await refused).toBe("voucher_expired");
    expect(await stateOf(round)).toBe("Active, free");
  });
});
