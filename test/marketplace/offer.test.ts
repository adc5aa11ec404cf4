import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AUDIENCES, type Audience } from "../../src/core/voucher/voucher.ts";
import {
  audienceRule,
  CONTRACT_MOVES,
  type ContractStatus,
  type Eligibility,
  isContractActive,
} from "../../src/marketplace/audience.ts";
import { canBuy, decideOffers, isWindowOpen, type Offer } from "../../src/marketplace/offer.ts";

const NOW = new Date("2027-03-01T12:00:00.000Z");

/** Moments relative to now, in milliseconds. `none` means no moment. */
const MOMENTS = { none: null, before: -1, at: 0, after: 1 } as const;
type Moment = keyof typeof MOMENTS;
const moments = Object.keys(MOMENTS) as Moment[];

const STATUSES: ContractStatus[] = ["Offered", "Active", "Ended", "Declined"];
const STRANGER: Eligibility = Object.freeze({ isOwner: false, contract: null });

it("a batch is open to everyone, or only to the brand's owners and users with an active contract", () => {
  for (const status of STATUSES) {
    for (const end of moments) {
      const contract = { id: "ctr_1", status, endsAt: momentOf(end) };
      const isActive = status === "Active" && (end === "none" || end === "after");
      expect(isContractActive(contract, NOW), `${status}, ends ${end}`).toBe(isActive);
      for (const eligibility of [STRANGER, { isOwner: true, contract }, { isOwner: false, contract }]) {
        const { isOwner } = eligibility;
        const rule = isOwner ? "brand_owner" : isActive && eligibility.contract ? "active_contract" : null;
        expect(audienceRule("OpenToAll", eligibility, NOW)).toBe("open_to_all");
        expect(audienceRule("ReferrerOnly", eligibility, NOW), `${status}, ends ${end}`).toBe(rule);
      }
    }
  }
});

it("the rules of a referrer contract allow only the documented state changes", () => {
  expect(CONTRACT_MOVES).toStrictEqual({ Active: ["Offered"], Declined: ["Offered"], Ended: ["Active"] });
});

it("a window is open from opensAt until closesAt or validUntil, and a batch without a window is closed", () => {
  expect(isWindowOpen(offer({ window: null }), NOW)).toBe(false);
  for (const opens of moments) {
    for (const closes of moments) {
      for (const valid of ["before", "at", "after"] as const) {
        const expected = opens !== "after" && (closes === "none" || closes === "after") && valid === "after";
        const window = { opensAt: momentOf(opens), closesAt: momentOf(closes) };
        const isOpen = isWindowOpen(offer({ window, validUntil: dateOf(valid) }), NOW);
        expect(isOpen, `opens ${opens}, closes ${closes}, valid until ${valid}`).toBe(expected);
      }
    }
  }
});

describe("decideOffers for every batch and caller", () => {
  const moment = fc.constantFrom<Moment>(...moments);
  const anOffer = fc.record({
    audience: fc.constantFrom<Audience>(...AUDIENCES),
    validUntil: fc.integer({ min: -1, max: 3 }).map((offset) => new Date(NOW.getTime() + offset)),
    suspended: fc.boolean(),
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

  /** A second implementation of the API's rules for offers. */
  function isOpenTo(one: Offer, { isOwner, contract }: Eligibility, byLink: boolean): boolean {
    const contractOpens = contract?.status === "Active" && (contract.endsAt?.getTime() ?? Infinity) > NOW.getTime();
    return byLink || one.audience === "OpenToAll" || isOwner || contractOpens;
  }

  it("decideOffers offers each open batch that is not suspended, in order of expiry, then of age", () => {
    fc.assert(
      fc.property(offers, eligibility, fc.boolean(), (supply, caller, byLink) => {
        const open = supply.filter((one) => isWindowOpen(one, NOW));
        const eligible = open.filter((one) => isOpenTo(one, caller, byLink));
        const mine = eligible
          .filter((one) => !one.suspended)
          .toSorted((a, b) => Number(a.validUntil) - Number(b.validUntil) || a.batchId.localeCompare(b.batchId))
          .map(({ batchId, audience }) => {
            const rule = byLink ? "referral_link" : audienceRule(audience, caller, NOW);
            return { batchId, audience, rule };
          });
        const referrersOnly = eligible.length === 0 ? "referrers_only" : "voucher_suspended";
        const code = open.length === 0 ? "window_closed" : referrersOnly;
        expect(decideOffers(supply, caller, NOW, byLink)).toEqual(
          mine.length === 0 ? { kind: "refused", code } : { kind: "open", batches: mine },
        );
      }),
      { numRuns: 500 },
    );
  });

  it("decideOffers gives the same result for any order of the given batches", () => {
    fc.assert(
      fc.property(offers, eligibility, (supply, caller) => {
        expect(decideOffers(supply.toReversed(), caller, NOW)).toEqual(decideOffers(supply, caller, NOW));
      }),
    );
  });

  it("decideOffers orders batches with equal expiry by id, and refuses ReferrerOnly batches to other users", () => {
    const [first, second] = ["bat_1", "bat_2"].map((batchId) => offer({ batchId })) as [Offer, Offer];
    const idsOf = (supply: Offer[]) => {
      const decision = decideOffers(supply, STRANGER, NOW);
      return decision.kind === "open" ? decision.batches.map(({ batchId }) => batchId) : decision.code;
    };
    expect(
      [
        [first, second],
        [second, first],
      ].map(idsOf),
    ).toEqual([
      ["bat_1", "bat_2"],
      ["bat_1", "bat_2"],
    ]);
    expect(idsOf([offer({ audience: "ReferrerOnly" })])).toBe("referrers_only");
  });

  it("canBuy is true exactly when a voucher is left and decideOffers offers the batch", () => {
    fc.assert(
      fc.property(anOffer, eligibility, fc.integer({ min: 0, max: 2 }), (one, caller, available) => {
        const given = decideOffers([{ batchId: "bat_1", ...one }], caller, NOW).kind === "open";
        expect(canBuy({ batchId: "bat_1", ...one }, available, caller, NOW)).toBe(given && available > 0);
      }),
    );
  });
});

function momentOf(moment: Moment): Date | null {
  const offset = MOMENTS[moment];
  return offset === null ? null : new Date(NOW.getTime() + offset);
}

function dateOf(moment: Exclude<Moment, "none">): Date {
  return momentOf(moment) as Date;
}

function offer(changes: Partial<Offer> = {}): Offer {
  return Object.freeze({
    batchId: "bat_1",
    audience: "OpenToAll",
    suspended: false,
    validUntil: dateOf("after"),
    window: { opensAt: null, closesAt: null },
    ...changes,
  });
}
