import { type SealedEvent, writeSeals } from "../../../src/core/chain/db/events.ts";
import { insertRedemptions } from "../../../src/core/redeem/db/redemptions.ts";
import { endReservations, openReservations } from "../../../src/core/reserve/db/reservations.ts";
import {
  advanceChains,
  extendVouchers,
  type LockedVoucher,
  redeemVouchers,
  suspendVouchers,
  voidVouchers,
} from "../../../src/core/voucher/db/vouchers.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { insertAcquisitions } from "../../../src/marketplace/db/acquisitions.ts";
import type { PreparedStatements } from "../../../src/platform/db/statements.ts";
import type { TestPartner } from "../../support/supply.ts";

/** Two vouchers, as one transaction has read them, and the API key under which it writes. */
export interface Two {
  now: Date;
  both: LockedVoucher[];
  partner: TestPartner;
  keyId: string;
}

interface Case {
  /** Another transaction's change of the second voucher, after this transaction has read both vouchers. */
  meanwhile: (two: Two) => PreparedStatements;
  writes: (two: Two) => PreparedStatements;
  /** Whether Postgres accepts the writes only after `meanwhile`. */
  needsMeanwhile?: true;
}

/** Cases by the written data. Each write follows from the state of two vouchers. */
export const CASES: Record<string, Case> = {
  "a reservation of a reserved voucher": {
    meanwhile: (two) => openReservations([reservation(two, secondOf(two))]),
    writes: (two) => openReservations(two.both.map(({ id }) => reservation(two, id))),
  },
  "a reservation of a redeemed voucher": {
    meanwhile: (two) => redeemVouchers(advance(two).slice(1), two.now),
    writes: (two) => openReservations(two.both.map(({ id }) => reservation(two, id))),
  },
  "the end of an ended reservation": {
    meanwhile: (two) => [
      ...openReservations([reservation(two, secondOf(two), `rsv_${secondOf(two)}`)]),
      ...endReservations([{ ticket: `rsv_${secondOf(two)}`, state: "Consumed" }], two.now),
    ],
    writes: (two) => endReservations([{ ticket: `rsv_${secondOf(two)}`, state: "Released" }], two.now),
    needsMeanwhile: true,
  },
  "a redemption whose reference is confirmed": {
    meanwhile: (two) => insertRedemptions([redemption(two, secondOf(two), `order of ${secondOf(two)}`)], two.now),
    writes: (two) =>
      insertRedemptions(
        two.both.map(({ id }) => redemption(two, id, `order of ${id}`)),
        two.now,
      ),
  },
  "an update of a changed chain head": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => advanceChains(advance(two)),
  },
  "the redemption of a voucher whose chain has changed": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => redeemVouchers(advance(two), two.now),
  },
  "the redemption of a voided voucher": {
    meanwhile: (two) => voidVouchers(advance(two).slice(1)),
    writes: (two) => redeemVouchers(advance(two), two.now),
  },
  "the voiding of a redeemed voucher": {
    meanwhile: (two) => redeemVouchers(advance(two).slice(1), two.now),
    writes: (two) => voidVouchers(advance(two)),
  },
  "the voiding of a voucher whose chain has changed": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => voidVouchers(advance(two)),
  },
  "the extension of a redeemed voucher": {
    meanwhile: (two) => redeemVouchers(advance(two).slice(1), two.now),
    writes: (two) => extendVouchers(advance(two), END),
  },
  "the extension of a voucher whose chain has changed": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => extendVouchers(advance(two), END),
  },
  "the redemption of a voucher that was extended meanwhile": {
    meanwhile: (two) => extendVouchers(advance(two).slice(1), END),
    writes: (two) => redeemVouchers(advance(two), two.now),
  },
  "the suspension of a redeemed voucher": {
    meanwhile: (two) => redeemVouchers(advance(two).slice(1), two.now),
    writes: (two) => suspendVouchers(advance(two), "own"),
  },
  "the suspension of a voucher whose chain has changed": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => suspendVouchers(advance(two), "own"),
  },
  "the redemption of a voucher that was suspended meanwhile": {
    meanwhile: (two) => suspendVouchers(advance(two).slice(1), "batch"),
    writes: (two) => redeemVouchers(advance(two), two.now),
  },
  "a claim that exists": {
    meanwhile: (two) => insertAcquisitions([{ ...claimOf(two, 0), userId: secondOf(two) }], two.now),
    writes: (two) => insertAcquisitions([{ ...claimOf(two, 1), userId: secondOf(two) }], two.now),
  },
  "a purchase that exists": {
    meanwhile: (two) =>
      insertAcquisitions([{ ...claimOf(two, 0), userId: secondOf(two), paymentRef: "payment" }], two.now),
    writes: (two) =>
      insertAcquisitions([{ ...claimOf(two, 1), userId: secondOf(two), paymentRef: "payment" }], two.now),
  },
  "the acquisition of a voided voucher": {
    meanwhile: (two) => voidVouchers(advance(two).slice(1)),
    writes: (two) => insertAcquisitions([claimOf(two, 0), claimOf(two, 1)], two.now),
  },
  "the acquisition of a voucher whose chain has changed": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => insertAcquisitions([claimOf(two, 0), claimOf(two, 1)], two.now),
  },
  "the seal of a sealed event": {
    meanwhile: () => [],
    writes: (two) => writeSeals([sealed(two, secondOf(two))]),
    needsMeanwhile: true,
  },
};

/** Later than the ends of all vouchers of the tests. */
const END = new Date("2999-12-31T00:00:00Z");

const reservation = ({ now, partner, keyId }: Two, voucherId: string, ticket = newId("rsv")) => ({
  ticket,
  voucherId,
  organizationId: partner.organizationId,
  keyId,
  startedAt: now,
  expiresAt: new Date(now.getTime() + 60_000),
  tokenSecretId: "secret",
});

const redemption = ({ partner, keyId }: Two, voucherId: string, externalRef = crypto.randomUUID() as string) => ({
  voucherId,
  organizationId: partner.organizationId,
  keyId,
  attemptId: `${voucherId}-${crypto.randomUUID()}`,
  ticket: null,
  redeemCode: crypto.randomUUID(),
  externalRef,
});

const advance = ({ both }: Two) =>
  both.map((voucher) => ({
    voucherId: voucher.id,
    lastSequenceBefore: voucher.lastSequence,
    after: { lastSequence: 2, sealedSequence: 2, sealedHash: "00".repeat(32) },
  }));

const sealed = ({ now }: Two, voucherId: string): SealedEvent => ({
  event: {
    voucherId,
    sequence: 1,
    eventType: "voucher.instance.issued",
    occurredAt: now,
    actorConnectedId: null,
    actorIsEmployee: null,
    data: { nonce: "00".repeat(16) },
  },
  seal: { previousHash: "00".repeat(32), recordHash: "00".repeat(32), payload: "{}" },
  logSlot: 4_096,
});

const claimOf = ({ both, partner }: Two, index: 0 | 1) => {
  const voucher = both[index] as Two["both"][number];
  const { productId: id, brandId, organizationId } = partner;
  return { userId: voucher.id, product: { id, brandId, organizationId, sandbox: false }, paymentRef: null, voucher };
};

function secondOf({ both }: Two): string {
  return both[1]?.id as string;
}
