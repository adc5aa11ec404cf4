import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  audienceRule,
  CONTRACT_MOVES,
  type ContractStatus,
  type Eligibility,
  isContractActive,
} from "../../src/domain/audience.ts";
import { canBuy, decideOffers, isWindowOpen, type Offer } from "../../src/domain/offer.ts";
import { AUDIENCES, type Audience } from "../../src/domain/voucher.ts";

const NOW = new Date("2027-03-01T12:00:00.000Z");

/** Where a moment lies, seen from now; `none` is no moment at all. */
const MOMENTS = { none: null, before: -1, at: 0, after: 1 } as const;
type Moment = keyof typeof MOMENTS;
const moments = Object.keys(MOMENTS) as Moment[];

function momentOf(moment: Moment): Date | null {
  const offset = MOMENTS[moment];
  return offset === null ? null : new Date(NOW.getTime() + offset);
}

function dateOf(moment: Exclude<Moment, "none">): Date {
  return momentOf(moment) as Date;
}

const STATUSES: ContractStatus[] = ["Offered", "Active", "Ended", "Declined"];
const STRANGER: Eligibility = Object.freeze({ isOwner: false, contract: null });
const OWNER: Eligibility = Object.freeze({ isOwner: true, contract: null });

function withContract(status: ContractStatus, endsAt: Moment, isOwner = false): Eligibility {
  return Object.freeze({ isOwner, contract: Object.freeze({ id: "ctr_1", status, endsAt: momentOf(endsAt) }) });
}

const REFERRER = withContract("Active", "after");

function offer(changes: Partial<Offer> = {}): Offer {
  return Object.freeze({
    batchId: "bat_1",
    audience: "OpenToAll",
    validUntil: dateOf("after"),
    window: { opensAt: null, closesAt: null },
    ...changes,
  });
}

it.each(
  STATUSES.flatMap((status) => moments.map((endsAt) => [status, endsAt] as const)),
)("a referrer contract opens supply exactly while Active and before its end: %s with its end %s", (status, endsAt) => {
  const opens = status === "Active" && (endsAt === "none" || endsAt === "after");
  expect(isContractActive({ status, endsAt: momentOf(endsAt) }, NOW)).toBe(opens);
  expect(audienceRule("ReferrerOnly", withContract(status, endsAt), NOW)).toBe(opens ? "active_contract" : null);
});

it("a referrer contract goes from Offered to Active or Declined, from Active to Ended, and nowhere else", () => {
  expect(CONTRACT_MOVES).toStrictEqual({ Active: ["Offered"], Declined: ["Offered"], Ended: ["Active"] });
});

it("the audience rule opens OpenToAll to everyone", () => {
  const standings = [STRANGER, OWNER, ...STATUSES.flatMap((status) => moments.map((end) => withContract(status, end)))];
  for (const eligibility of standings) expect(audienceRule("OpenToAll", eligibility, NOW)).toBe("open_to_all");
});

it("the audience rule closes ReferrerOnly to users without a relation to the brand", () => {
  expect(audienceRule("ReferrerOnly", STRANGER, NOW)).toBeNull();
});

it("the audience rule never locks the owner out, with any contract or none", () => {
  expect(audienceRule("ReferrerOnly", OWNER, NOW)).toBe("brand_owner");
  for (const status of STATUSES) {
    for (const end of moments) {
      expect(audienceRule("ReferrerOnly", withContract(status, end, true), NOW)).toBe("brand_owner");
    }
  }
});

describe("a window", () => {
  it("a window is closed when there is none", () => {
    expect(isWindowOpen(offer({ window: null }), NOW)).toBe(false);
  });

  const cases = moments.flatMap((opens) =>
    moments.flatMap((closes) => (["before", "at", "after"] as const).map((valid) => [opens, closes, valid] as const)),
  );
  it.each(
    cases,
  )("a window is open from opensAt, up to and not at closesAt and validUntil: %s, %s, %s", (opens, closes, valid) => {
    const expected = opens !== "after" && (closes === "none" || closes === "after") && valid === "after";
    const window = { opensAt: momentOf(opens), closesAt: momentOf(closes) };
    expect(isWindowOpen(offer({ window, validUntil: dateOf(valid) }), NOW)).toBe(expected);
  });
});

describe("the decision about supply", () => {
  const closed = { opensAt: null, closesAt: NOW };

  it("decideOffers opens both audiences by a referrer's link, to everyone, and names that rule", () => {
    for (const audience of AUDIENCES) {
      for (const eligibility of [STRANGER, OWNER, REFERRER]) {
        expect(decideOffers([offer({ audience })], eligibility, NOW, true)).toEqual({
          kind: "open",
          batches: [{ batchId: "bat_1", audience, rule: "referral_link" }],
        });
      }
    }
  });

  it("decideOffers tries batches that expire first, and of equal ones the older one", () => {
    const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1_000);
    const offers = [
      offer({ batchId: "bat_4", validUntil: at(30) }),
      offer({ batchId: "bat_3", validUntil: at(20), audience: "ReferrerOnly" }),
      offer({ batchId: "bat_2", validUntil: at(20) }),
      offer({ batchId: "bat_1", validUntil: at(40), window: closed }),
      offer({ batchId: "bat_0", validUntil: at(10) }),
    ];
    const order = (eligibility: Eligibility) => {
      const decision = decideOffers(offers, eligibility, NOW);
      return decision.kind === "open" ? decision.batches.map(({ batchId }) => batchId) : decision.code;
    };
    expect(order(REFERRER)).toEqual(["bat_0", "bat_2", "bat_3", "bat_4"]);
    expect(order(STRANGER)).toEqual(["bat_0", "bat_2", "bat_4"]);
  });
});

describe("for every supply and caller", () => {
  const moment = fc.constantFrom<Moment>(...moments);
  const anOffer = fc.record({
    audience: fc.constantFrom<Audience>(...AUDIENCES),
    validUntil: fc.constantFrom("before" as const, "at" as const, "after" as const).map(dateOf),
    window: fc.option(fc.record({ opensAt: moment.map(momentOf), closesAt: moment.map(momentOf) })),
  });
  const offers = fc
    .array(anOffer, { maxLength: 5 })
    .map((list) => list.map((one, index): Offer => Object.freeze({ batchId: `bat_${index}`, ...one })));
  const eligibility: fc.Arbitrary<Eligibility> = fc.record({
    isOwner: fc.boolean(),
    contract: fc.option(
      fc.record({ id: fc.constant("ctr_1"), status: fc.constantFrom(...STATUSES), endsAt: moment.map(momentOf) }),
    ),
  });

  /** The rules of the contract, said once more and differently. */
  function isOpenTo(one: Offer, { isOwner, contract }: Eligibility, byLink: boolean): boolean {
    const contractOpens = contract?.status === "Active" && (contract.endsAt?.getTime() ?? Infinity) > NOW.getTime();
    return byLink || one.audience === "OpenToAll" || isOwner || contractOpens;
  }

  it("decideOffers offers exactly the open batches that are open to the caller each once, by their validity", () => {
    fc.assert(
      fc.property(offers, eligibility, fc.boolean(), (supply, caller, byLink) => {
        const open = supply.filter((one) => isWindowOpen(one, NOW));
        const mine = open.filter((one) => isOpenTo(one, caller, byLink));
        const decision = decideOffers(supply, caller, NOW, byLink);
        if (decision.kind === "refused") {
          expect(mine).toEqual([]);
          expect(decision.code).toBe(open.length === 0 ? "window_closed" : "referrers_only");
          return;
        }
        expect(mine).not.toEqual([]);
        expect(decision.batches.map(({ batchId }) => batchId).sort()).toEqual(
          mine.map(({ batchId }) => batchId).sort(),
        );
        const validity = decision.batches.map(
          ({ batchId }) => supply.find((one) => one.batchId === batchId)?.validUntil,
        );
        expect(validity).toEqual(validity.toSorted((a, b) => Number(a) - Number(b)));
        for (const { batchId, audience } of decision.batches) {
          expect(audience).toBe(supply.find((one) => one.batchId === batchId)?.audience);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("decideOffers does not depend on the order of the batches", () => {
    fc.assert(
      fc.property(offers, eligibility, (supply, caller) => {
        expect(decideOffers(supply.toReversed(), caller, NOW)).toEqual(decideOffers(supply, caller, NOW));
      }),
    );
  });

  it("canBuy is true exactly when something is left and the decision about this one batch is to give", () => {
    fc.assert(
      fc.property(anOffer, eligibility, fc.integer({ min: 0, max: 1_001 }), (one, caller, available) => {
        const given = decideOffers([{ batchId: "bat_1", ...one }], caller, NOW).kind === "open";
        expect(canBuy({ batchId: "bat_1", ...one }, available, caller, NOW)).toBe(given && available > 0);
      }),
    );
  });
});
