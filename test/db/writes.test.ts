import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SealedEvent, writeSeals } from "../../src/db/events.ts";
import { insertRedemptions } from "../../src/db/redemptions.ts";
import { endHolds, openHolds } from "../../src/db/reservations.ts";
import type { Writes } from "../../src/db/statements.ts";
import { takeVoucherRow } from "../../src/db/takings.ts";
import { inTransaction, write } from "../../src/db/transaction.ts";
import { advanceChains, readLockedVouchers, redeemVouchers, voidVoucherRow } from "../../src/db/vouchers.ts";
import { newId } from "../../src/domain/ids.ts";
import { dumpRows } from "../support/row-dump.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";

let servers: TestServers;
let partner: TestPartner;
let keyId: string;

beforeAll(async () => {
  servers = await openTestServers();
  partner = await makePartner(servers.db);
  keyId = (await makeKey(servers.db, partner.organizationId)).id;
});

afterAll(() => servers.close());

/** Two vouchers in a window, as a transaction reads them under their locks. */
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

const commit = (writes: Writes) => inTransaction(servers.db, (tx) => write(tx, writes));

const hold = ({ now }: Two, voucherId: string, ticket = newId("rsv")) => ({
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
});

interface Case {
  /** What somebody else did to the second of two vouchers since they were read. */
  meanwhile: (two: Two) => Writes;
  writes: (two: Two) => Writes;
  /** There is nothing to write at all without what happened meanwhile. */
  needsMeanwhile?: true;
}

const CASES: Record<string, Case> = {
  "a hold on a voucher that is held": {
    meanwhile: (two) => openHolds([hold(two, secondOf(two))]),
    writes: (two) => openHolds(two.both.map(({ id }) => hold(two, id))),
  },
  "a hold on a voucher that is used": {
    meanwhile: (two) => redeemVouchers(advance(two).slice(1), two.now),
    writes: (two) => openHolds(two.both.map(({ id }) => hold(two, id))),
  },
  "the end of a hold that ended": {
    meanwhile: (two) => [
      ...openHolds([hold(two, secondOf(two), `rsv_${secondOf(two)}`)]),
      ...endHolds([{ ticket: `rsv_${secondOf(two)}`, state: "Consumed" }], two.now),
    ],
    writes: (two) => endHolds([{ ticket: `rsv_${secondOf(two)}`, state: "Released" }], two.now),
    needsMeanwhile: true,
  },
  "a burn whose reference is confirmed": {
    meanwhile: (two) => insertRedemptions([redemption(secondOf(two), `order of ${secondOf(two)}`)], two.now),
    writes: (two) =>
      insertRedemptions(
        two.both.map(({ id }) => redemption(id, `order of ${id}`)),
        two.now,
      ),
  },
  "the move of a chain that moved": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => advanceChains(advance(two)),
  },
  "the redeem of a voucher whose chain moved": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => redeemVouchers(advance(two), two.now),
  },
  "the redeem of a voucher that is voided": {
    meanwhile: (two) => voidVoucherRow(secondOf(two), 1),
    writes: (two) => redeemVouchers(advance(two), two.now),
  },
  "the void of a voucher that is used": {
    meanwhile: (two) => redeemVouchers(advance(two).slice(1), two.now),
    writes: (two) => voidVoucherRow(secondOf(two), 1),
  },
  "the void of a voucher whose chain moved": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => voidVoucherRow(secondOf(two), 1),
  },
  "the taking of a voucher that was taken": {
    meanwhile: (two) => takeVoucherRow(secondOf(two), 1),
    writes: (two) => takeVoucherRow(secondOf(two), 2),
    needsMeanwhile: true,
  },
  "the taking of a voucher whose chain moved": {
    meanwhile: (two) => advanceChains(advance(two).slice(1)),
    writes: (two) => takeVoucherRow(secondOf(two), 1),
  },
  "the seal of a sealed event": {
    meanwhile: () => [],
    writes: (two) => writeSeals([sealed(two, secondOf(two))]),
    needsMeanwhile: true,
  },
};

function secondOf({ both }: Two): string {
  return both[1]?.id as string;
}

describe("a write that was decided on what is not so any more", () => {
  it.each(Object.entries(CASES))("raises: %s", async (_, { meanwhile, writes }) => {
    const two = await twoVouchers();
    await commit(meanwhile(two));
    const before = await dumpRows(servers.db);
    await expect(commit(writes(two))).rejects.toMatchObject({ code: "VS001" });
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it.each(
    Object.entries(CASES).filter(([, { needsMeanwhile }]) => !needsMeanwhile),
  )("and writes when nothing happened meanwhile: %s", async (_, { writes }) => {
    const two = await twoVouchers();
    const before = await dumpRows(servers.db);
    await commit(writes(two));
    expect(await dumpRows(servers.db)).not.toEqual(before);
  });
});
