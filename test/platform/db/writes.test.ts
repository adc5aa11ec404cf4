import { beforeAll, expect, it } from "vitest";
import { type SealedEvent, writeSeals } from "../../../src/core/chain/db/events.ts";
import { insertRedemptions } from "../../../src/core/redeem/db/redemptions.ts";
import { endReservations, openReservations } from "../../../src/core/reserve/db/reservations.ts";
import {
  advanceChains,
  readLockedVouchers,
  redeemVouchers,
  voidVouchers,
} from "../../../src/core/voucher/db/vouchers.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { insertAcquisitions } from "../../../src/marketplace/db/acquisitions.ts";
import type { PreparedStatements } from "../../../src/platform/db/statements.ts";
import { inTransaction, write } from "../../../src/platform/db/transaction.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { issueVouchers, makeKey } from "../../support/supply.ts";
import { useDatabase } from "../../support/use-service.ts";

const { servers, partner } = useDatabase();
let keyId: string;

beforeAll(async () => {
  keyId = (await makeKey(servers.db, partner.organizationId)).id;
});

const commit = (writes: PreparedStatements) => inTransaction(servers.db, (tx) => write(tx, writes));

interface Case {
  /** What another transaction did to the second voucher after both were read. */
  meanwhile: (two: Two) => PreparedStatements;
  writes: (two: Two) => PreparedStatements;
  /** The writes are only valid after `meanwhile`. */
  needsMeanwhile?: true;
}

const CASES: Record<string, Case> = {
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
    meanwhile: (two) => insertRedemptions([redemption(secondOf(two), `order of ${secondOf(two)}`)], two.now),
    writes: (two) =>
      insertRedemptions(
        two.both.map(({ id }) => redemption(id, `order of ${id}`)),
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
  "a claim that exists": {
    meanwhile: (two) => insertAcquisitions([{ ...claimOf(two, 0), userId: secondOf(two) }]),
    writes: (two) => insertAcquisitions([{ ...claimOf(two, 1), userId: secondOf(two) }]),
  },
  "a purchase that exists": {
    meanwhile: (two) => insertAcquisitions([{ ...claimOf(two, 0), userId: secondOf(two), paymentRef: "payment" }]),
    writes: (two) => insertAcquisitions([{ ...claimOf(two, 1), userId: secondOf(two), paymentRef: "payment" }]),
  },
  "the acquisition of a voided voucher": {
    meanwhile: (two) => voidVouchers(advance(two).slice(1)),
    writes: (two) => insertAcquisitions([claimOf(two, 0), claimOf(two, 1)]),
  },
  "the acquisition of a voucher whose chain has changed": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => insertAcquisitions([claimOf(two, 0), claimOf(two, 1)]),
  },
  "the seal of a sealed event": {
    meanwhile: () => [],
    writes: (two) => writeSeals([sealed(two, secondOf(two))]),
    needsMeanwhile: true,
  },
};

it.each(Object.entries(CASES))("a write that was decided on outdated state raises and writes nothing: %s", async (_, {
  meanwhile,
  writes,
}) => {
  const two = await twoVouchers();
  await commit(meanwhile(two));
  const before = await dumpRows(servers.db);
  await expect(commit(writes(two))).rejects.toMatchObject({ code: "VS001" });
  expect(await dumpRows(servers.db)).toEqual(before);
});

it.each(
  Object.entries(CASES).filter(([, { needsMeanwhile }]) => !needsMeanwhile),
)("a write succeeds when the state is current: %s", async (_, { writes }) => {
  const two = await twoVouchers();
  const before = await dumpRows(servers.db);
  await commit(writes(two));
  expect(await dumpRows(servers.db)).not.toEqual(before);
});

/** Two vouchers in a window, as read under their locks. */
async function twoVouchers() {
  const issued = await issueVouchers(servers.db, partner, 2, {
    windows: { claim: { opensAt: null, closesAt: null } },
  });
  return inTransaction(servers.db, async (tx) => {
    const ids = issued.map(({ id }) => id);
    const { now, vouchers } = await readLockedVouchers(tx, ids);
    return { now, both: ids.flatMap((id) => vouchers.get(id) ?? []) };
  });
}

type Two = Awaited<ReturnType<typeof twoVouchers>>;

const reservation = ({ now }: Two, voucherId: string, ticket = newId("rsv")) => ({
  ticket,
  voucherId,
  organizationId: partner.organizationId,
  keyId,
  startedAt: now,
  expiresAt: new Date(now.getTime() + 60_000),
  tokenSecretId: "secret",
});

const redemption = (voucherId: string, externalRef = crypto.randomUUID() as string) => ({
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

/** A claim of one of the vouchers by a user of its own. */
const claimOf = ({ both }: Two, index: 0 | 1) => {
  const voucher = both[index] as Two["both"][number];
  const { productId: id, brandId, organizationId } = partner;
  return { userId: voucher.id, product: { id, brandId, organizationId, sandbox: false }, paymentRef: null, voucher };
};

function secondOf({ both }: Two): string {
  return both[1]?.id as string;
}
