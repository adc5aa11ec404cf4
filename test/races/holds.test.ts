import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leaseKey } from "../../src/holds/lease.ts";
import { voidVoucher } from "../../src/services/void-voucher.ts";
import { type PartnerClient, partnerClient, type Reply } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { countWaiting, untilPast, untilWaiting, whileLocked } from "../support/outside-transaction.ts";
import { readRecorded, readReservation } from "../support/recorded.ts";
import { countJobs } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVouchers, makeKey, makePartner, provisioning, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

let servers: TestServers;
let apis: [TestApi, TestApi];
let workers: TestWorker[];
let partner: TestPartner;
/** The holder's key at either API. */
let holder: [PartnerClient, PartnerClient];
/** Another key of the same organization at either API. */
let rival: [PartnerClient, PartnerClient];

beforeAll(async () => {
  servers = await openTestServers();
  const env = { RATE_LIMIT_RPS: "0", MISS_LIMIT_PER_MINUTE: "0" };
  apis = await Promise.all([startApi(servers, env), startApi(servers, env)]);
  workers = await Promise.all([startWorkers(servers), startWorkers(servers)]);
  partner = await makePartner(servers.db);
  [holder, rival] = await Promise.all([makeTills(), makeTills()]);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all(apis.map((api) => api.close()));
  await Promise.all(workers.map((worker) => worker.close()));
  await servers.close();
});

async function makeTills(): Promise<[PartnerClient, PartnerClient]> {
  const { key } = await makeKey(servers.db, partner.organizationId);
  return [partnerClient(apis[0].url, key), partnerClient(apis[1].url, key)];
}

/** One voucher in one race; `ticket` and `token` are those of the hold that it starts with, if it does. */
interface Round {
  id: string;
  code: string;
  ticket: string;
  token: string;
}

/** One side of a race: acts through the API of its side and says in a word what came of it. */
type Act = (round: Round, side: 0 | 1) => Promise<string>;

const reserveBy =
  (tills: () => [PartnerClient, PartnerClient]): Act =>
  async (round, side) => {
    const reply = await tills()[side].reserve(round.code);
    if (reply.status !== 200) return refusalOf(reply);
    return reply.body.ticket === round.ticket ? "kept" : "held";
  };

const redeemBy =
  (tills: () => [PartnerClient, PartnerClient], by: "code" | "ticket" | "token"): Act =>
  async (round, side) => {
    const reply = await tills()[side].redeem({
      [by === "ticket" ? "ticket" : "code"]: by === "ticket" ? round.ticket : round.code,
      token: by === "token" ? round.token : null,
      externalRef: `${round.id}-${side}`,
    });
    return reply.status === 200 ? "burnt" : refusalOf(reply);
  };

const release: Act = async (round, side) => {
  const reply = await rival[side].release(round.ticket);
  if (reply.status !== 200) return refusalOf(reply);
  return reply.body.released ? "released" : "nothing";
};

const voids: Act = async (round) => {
  try {
    await voidVoucher(provisioning(servers.db), partner.organizationId, round.code, null);
    return "voided";
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
};

const byHolder = () => holder;
const byRival = () => rival;

function refusalOf({ status, body }: Reply): string {
  return status === 409 ? body.code : `${status} ${body.code}`;
}

/** What a race left behind. */
async function stateOf(round: Round): Promise<string> {
  const { status, liveTicket, redemption } = await readRecorded(servers.db, round.id);
  const hold = liveTicket === null ? "free" : liveTicket === round.ticket ? "kept" : "held";
  if (redemption === null) return `${status}, ${hold}`;
  return `${status}, ${hold}, ${redemption.ticket === null ? "no hold consumed" : "hold consumed"}`;
}

interface Race {
  title: string;
  startsHeld: boolean;
  left: Act;
  right: Act;
  /** What comes out when the left side gets to the voucher's row first, and when the right one does. */
  leftFirst: string;
  rightFirst: string;
  /** What else may come out when neither has to wait for the row. */
  orElse?: string[];
}

const RACES: Race[] = [
  {
    title: "reserve against another key's redeem",
    startsHeld: false,
    left: reserveBy(byHolder),
    right: redeemBy(byRival, "code"),
    leftFirst: "held + voucher_reserved = Active, held",
    rightFirst: "voucher_used + burnt = Redeemed, free, no hold consumed",
  },
  {
    title: "reserve against the same key's redeem",
    startsHeld: false,
    left: reserveBy(byHolder),
    right: redeemBy(byHolder, "code"),
    leftFirst: "held + burnt = Redeemed, free, hold consumed",
    rightFirst: "voucher_used + burnt = Redeemed, free, no hold consumed",
  },
  {
    title: "reserve against another key's reserve",
    startsHeld: false,
    left: reserveBy(byHolder),
    right: reserveBy(byRival),
    leftFirst: "held + voucher_reserved = Active, held",
    rightFirst: "voucher_reserved + held = Active, held",
  },
  {
    title: "reserve against void",
    startsHeld: false,
    left: reserveBy(byHolder),
    right: voids,
    leftFirst: "held + voided = Voided, free",
    rightFirst: "voucher_voided + voided = Voided, free",
  },
  {
    title: "redeem against void",
    startsHeld: false,
    left: redeemBy(byHolder, "code"),
    right: voids,
    leftFirst: "burnt + voucher_used = Redeemed, free, no hold consumed",
    rightFirst: "voucher_voided + voided = Voided, free",
  },
  {
    title: "redeem by ticket against release",
    startsHeld: true,
    left: redeemBy(byHolder, "ticket"),
    right: release,
    leftFirst: "burnt + nothing = Redeemed, free, hold consumed",
    rightFirst: "reservation_ended + released = Active, free",
  },
  {
    title: "the holder's redeem by code against release",
    startsHeld: true,
    left: redeemBy(byHolder, "code"),
    right: release,
    leftFirst: "burnt + nothing = Redeemed, free, hold consumed",
    rightFirst: "burnt + released = Redeemed, free, no hold consumed",
  },
  {
    title: "another key's redeem with the token against release",
    startsHeld: true,
    left: redeemBy(byRival, "token"),
    right: release,
    leftFirst: "burnt + nothing = Redeemed, free, hold consumed",
    rightFirst: "token_mismatch + released = Active, free",
  },
  {
    title: "another key's redeem without the token against release",
    startsHeld: true,
    left: redeemBy(byRival, "code"),
    right: release,
    leftFirst: "voucher_reserved + released = Active, free",
    rightFirst: "burnt + released = Redeemed, free, no hold consumed",
  },
  {
    title: "the holder's repeated reserve against release",
    startsHeld: true,
    left: reserveBy(byHolder),
    right: release,
    leftFirst: "kept + released = Active, free",
    rightFirst: "kept + released = Active, free",
    orElse: ["held + released = Active, held"],
  },
  {
    title: "another key's reserve against release",
    startsHeld: true,
    left: reserveBy(byRival),
    right: release,
    leftFirst: "voucher_reserved + released = Active, free",
    rightFirst: "voucher_reserved + released = Active, free",
    orElse: ["held + released = Active, held"],
  },
  {
    title: "release against release",
    startsHeld: true,
    left: release,
    right: release,
    leftFirst: "released + nothing = Active, free",
    rightFirst: "nothing + released = Active, free",
  },
  {
    title: "void of a held voucher against the holder's redeem",
    startsHeld: true,
    left: voids,
    right: redeemBy(byHolder, "ticket"),
    leftFirst: "voided + voucher_voided = Voided, free",
    rightFirst: "voucher_used + burnt = Redeemed, free, hold consumed",
  },
  {
    title: "void of a held voucher against release",
    startsHeld: true,
    left: voids,
    right: release,
    leftFirst: "voided + nothing = Voided, free",
    rightFirst: "voided + released = Voided, free",
  },
  {
    title: "void of a held voucher against the holder's repeated reserve",
    startsHeld: true,
    left: voids,
    right: reserveBy(byHolder),
    leftFirst: "voided + kept = Voided, free",
    rightFirst: "voided + kept = Voided, free",
    orElse: ["voided + voucher_voided = Voided, free"],
  },
];

/** Rounds of one race that run at the same time, each on a voucher of its own. */
const ROUNDS_AT_ONCE = 10;
const WAVES = 4;
/** Fixed, so that a failure can be run again. */
const SEED = 20_260_118;

async function makeRounds(count: number, held: boolean): Promise<Round[]> {
  const vouchers = await issueVouchers(servers.db, partner, count);
  return Promise.all(
    vouchers.map(async ({ id, code }) => {
      if (!held) return { id, code, ticket: "", token: "" };
      const { body } = await holder[0].reserve(code);
      return { id, code, ticket: body.ticket, token: body.token };
    }),
  );
}

/** Lets the event loop turn so many times. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Runs both sides while somebody else holds the row, `first` in front of the other, and lets go once both are stuck or done. */
async function runInOrder(race: Race, round: Round, first: "left" | "right"): Promise<string> {
  let underWay = 0;
  const start = async (act: Act, side: 0 | 1) => {
    underWay += 1;
    return act(round, side).finally(() => {
      underWay -= 1;
    });
  };
  const untilStuck = () =>
    until(async () => {
      const [waiting, burning, jobs] = await Promise.all([
        countWaiting(servers.db),
        countWaiting(servers.db, "worker"),
        countJobs(servers.redis, "redeem"),
      ]);
      return waiting >= underWay && burning >= jobs;
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

describe("two calls that meet at one voucher", () => {
  it.each(RACES)("$title: the one that gets to the row first is decided first", async (race) => {
    const [one, other] = (await makeRounds(2, race.startsHeld)) as [Round, Round];
    expect(await runInOrder(race, one, "left")).toBe(race.leftFirst);
    expect(await runInOrder(race, other, "right")).toBe(race.rightFirst);
    await assertInvariants(servers.db);
  });

  it.each(RACES)("$title: ends as if one had come after the other, however they meet", async (race) => {
    const legal = [race.leftFirst, race.rightFirst, ...(race.orElse ?? [])];
    const delays = fc.sample(fc.tuple(fc.nat(40), fc.nat(40)), { seed: SEED, numRuns: ROUNDS_AT_ONCE * WAVES });
    for (let wave = 0; wave < WAVES; wave++) {
      const rounds = await makeRounds(ROUNDS_AT_ONCE, race.startsHeld);
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

  it("burns once and consumes the hold when its holder and the bearer of its token redeem together", async () => {
    for (const round of await makeRounds(ROUNDS_AT_ONCE, true)) {
      const outcome = await Promise.all([redeemBy(byHolder, "ticket")(round, 0), redeemBy(byRival, "token")(round, 1)]);
      expect(outcome.toSorted()).toEqual(["burnt", "voucher_used"]);
      expect(await stateOf(round)).toBe("Redeemed, free, hold consumed");
    }
    await assertInvariants(servers.db);
  });
});

/** Moves a hold's end to so many milliseconds from now, and ends its lease, which never outlives a hold. */
async function endSoon(round: Round, inMs: number): Promise<Date> {
  await servers.redis.del(leaseKey(round.id));
  const { rows } = await servers.db.query<{ expires_at: Date }>(
    `UPDATE reservations SET started_at = started_at - interval '900 seconds',
            expires_at = date_trunc('milliseconds', clock_timestamp()) + make_interval(secs => $2::float8 / 1000)
      WHERE ticket = $1 RETURNING expires_at`,
    [round.ticket, inMs],
  );
  return rows[0]?.expires_at as Date;
}

describe("the end of a hold", () => {
  it("is the one moment before which only the holder burns and from which on only others do", async () => {
    const delays = fc.sample(fc.tuple(fc.nat(25), fc.nat(40), fc.nat(40)), { seed: SEED, numRuns: 60 });
    for (let wave = 0; wave < 6; wave++) {
      const rounds = await makeRounds(10, true);
      await Promise.all(
        rounds.map(async (round, n) => {
          const [inMs, holderTurns, rivalTurns] = delays[wave * 10 + n] as [number, number, number];
          const endsAt = await endSoon(round, inMs);
          const [byTicket, byCode] = await Promise.all([
            turns(holderTurns).then(() => redeemBy(byHolder, "ticket")(round, 0)),
            turns(rivalTurns).then(() => redeemBy(byRival, "code")(round, 1)),
          ]);
          const { redemption } = await readRecorded(servers.db, round.id);
          const hold = await readReservation(servers.db, round.ticket);
          if (byTicket === "burnt") {
            expect(["voucher_reserved", "voucher_used"]).toContain(byCode);
            expect(redemption?.ticket).toBe(round.ticket);
            expect(redemption?.redeemedAt.getTime()).toBeLessThan(endsAt.getTime());
            expect(hold).toMatchObject({ state: "Consumed", endedAt: redemption?.redeemedAt });
          } else if (byCode === "burnt") {
            expect(["reservation_ended", "voucher_used"]).toContain(byTicket);
            expect(redemption?.ticket).toBeNull();
            expect(redemption?.redeemedAt.getTime()).toBeGreaterThanOrEqual(endsAt.getTime());
            expect(hold).toMatchObject({ state: "Expired", endedAt: endsAt });
          } else {
            expect([byTicket, byCode]).toEqual(["reservation_ended", "voucher_reserved"]);
          }
        }),
      );
      await assertInvariants(servers.db);
    }
  });

  it("is the one moment before which its holder burns and from which on another key reserves", async () => {
    const delays = fc.sample(fc.tuple(fc.nat(25), fc.nat(40), fc.nat(40)), { seed: SEED + 1, numRuns: 60 });
    for (let wave = 0; wave < 6; wave++) {
      const rounds = await makeRounds(10, true);
      await Promise.all(
        rounds.map(async (round, n) => {
          const [inMs, holderTurns, rivalTurns] = delays[wave * 10 + n] as [number, number, number];
          const endsAt = await endSoon(round, inMs);
          const [burn, reserve] = await Promise.all([
            turns(holderTurns).then(() => redeemBy(byHolder, "ticket")(round, 0)),
            turns(rivalTurns).then(() => reserveBy(byRival)(round, 1)),
          ]);
          const { redemption, liveTicket } = await readRecorded(servers.db, round.id);
          if (burn === "burnt") {
            expect(["voucher_reserved", "voucher_used"]).toContain(reserve);
            expect(redemption?.redeemedAt.getTime()).toBeLessThan(endsAt.getTime());
          } else {
            expect(burn).toBe("reservation_ended");
            expect(["held", "voucher_reserved"]).toContain(reserve);
          }
          if (reserve === "held") {
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

  it("counts at the moment the row is free, not when the holder's redeem began to wait for it", async () => {
    const [round] = (await makeRounds(1, true)) as [Round];
    const { redeem } = await whileLocked(servers.db, [round.id], async () => {
      const redeem = redeemBy(byHolder, "ticket")(round, 0);
      await untilWaiting(servers.db, 1, "worker");
      await endSoonBesideLock(round);
      return { redeem };
    });
    expect(await redeem).toBe("reservation_ended");
    expect(await stateOf(round)).toBe("Active, free");
  });

  it("counts at the moment the row is free, not when another key's redeem began to wait for it", async () => {
    const [round] = (await makeRounds(1, true)) as [Round];
    const { redeem } = await whileLocked(servers.db, [round.id], async () => {
      const redeem = redeemBy(byRival, "code")(round, 0);
      await untilWaiting(servers.db, 1, "worker");
      await endSoonBesideLock(round);
      return { redeem };
    });
    expect(await redeem).toBe("burnt");
    expect(await stateOf(round)).toBe("Redeemed, free, no hold consumed");
  });

  it("leaves a release that waited past it with nothing to release", async () => {
    const [round] = (await makeRounds(1, true)) as [Round];
    const { released } = await whileLocked(servers.db, [round.id], async () => {
      const released = release(round, 0);
      await untilWaiting(servers.db, 1, "api");
      await endSoonBesideLock(round);
      return { released };
    });
    expect(await released).toBe("nothing");
  });

  /** Ends a hold while its voucher's row is locked, and waits until that moment has passed. */
  async function endSoonBesideLock(round: Round): Promise<void> {
    await untilPast(servers.db, await endSoon(round, 20));
  }
});

describe("the end of a voucher's validity", () => {
  async function passValidity(voucherId: string): Promise<void> {
    const { rows } = await servers.db.query<{ valid_until: Date }>(
      `UPDATE batches SET valid_until = clock_timestamp() + interval '20 milliseconds'
        WHERE id = (SELECT batch_id FROM vouchers WHERE id = $1) RETURNING valid_until`,
      [voucherId],
    );
    await untilPast(servers.db, rows[0]?.valid_until as Date);
  }

  it.each([
    { title: "redeem", act: redeemBy(byHolder, "code"), role: "worker" as const },
    { title: "reserve", act: reserveBy(byHolder), role: "api" as const },
  ])("refuses a $title that waited for the row past it", async ({ act, role }) => {
    const [round] = (await makeRounds(1, false)) as [Round];
    const { refused } = await whileLocked(servers.db, [round.id], async () => {
      const refused = act(round, 0);
      await untilWaiting(servers.db, 1, role);
      await passValidity(round.id);
      return { refused };
    });
    expect(await refused).toBe("voucher_expired");
    expect(await stateOf(round)).toBe("Active, free");
  });
});
