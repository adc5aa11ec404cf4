import { expect, it } from "vitest";
import type { EventType } from "../../../src/core/chain/chain.ts";
import { insertPendingEvents } from "../../../src/core/chain/db/events.ts";
import { runSealJob } from "../../../src/core/chain/seal-committer.ts";
import { sealQueue } from "../../../src/core/chain/seal-job.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { inTransaction, write } from "../../../src/platform/db/transaction.ts";
import { openQueue } from "../../../src/platform/queues/open-queue.ts";
import { databaseTime, lockRows, untilWaiting, whileLocked } from "../../support/outside-transaction.ts";
import { readRecorded } from "../../support/recorded.ts";
import { countJobs, newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import { sealVoucher } from "../../support/seal-voucher.ts";
import { startWorkers, type WorkerContext } from "../../support/service.ts";
import { provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { voidVoucher } from "../../support/void-voucher.ts";

const { servers, db, api, partner, keys, issue, contexts } = useService({ workers: [], contexts: 2 });
const [one, other] = contexts;

const THREE: EventType[] = ["voucher.instance.claimed", "voucher.instance.bought", "voucher.instance.expired"];

it("several seal jobs seal a Pending event once", async () => {
  const { id } = await issue();
  await appendPending(id, ["voucher.instance.claimed"]);
  const queue = openQueue(sealQueue, servers.shardOf(id), api.ctx.redis, api.ctx.log);
  const data = { voucherId: id, origin: api.ctx.deployment.serverId };
  for (let n = 0; n < 6; n++) await queue.add(sealQueue.name, data);
  const workers = await Promise.all([startWorkers(servers), startWorkers(servers)]);
  await until(async () => (await countJobs(servers, "seal")) === 0);
  await Promise.all(workers.map((worker) => worker.close()));
  const finished = (await queue.getCompleted()).filter((job) => job.data.voucherId === id);
  await queue.close();
  expect(finished.map((job) => job.returnvalue.sealed).toSorted()).toEqual([0, 0, 0, 0, 0, 1]);
  expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 claimed Sealed"]);
});

it("sealVoucher seals Pending events in order of sequence, and nothing in a second run", async () => {
  const { id } = await issue();
  await appendPending(id, THREE);
  expect(await sealVoucher(one, id)).toBe(3);
  expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 claimed Sealed", "3 bought Sealed", "4 expired Sealed"]);
  const sealed = await readRecorded(db, id);
  expect(sealed.sealedSequence).toBe(4);
  expect(sealed.events.slice(1).map(({ data }) => data)).toEqual(
    [0, 1, 2].map((place) => ({
      nonce: String(place).padStart(32, "0"),
      place,
      priceUsd: 40.25,
      word: "Gutschein für Ünal €",
    })),
  );
  expect([await sealVoucher(one, id), await sealVoucher(one, "vch_none")]).toEqual([0, 0]);
  expect(await readRecorded(db, id)).toEqual(sealed);
});

it("of two sealVoucher calls that wait for one voucher, the second seals nothing", async () => {
  const { id } = await issue();
  await appendPending(id, THREE);
  const { seals } = await whileLocked(db, [id], async () => {
    const seals = [one, other].map((ctx) => sealVoucher(ctx, id));
    await untilWaiting(db, 2, "worker");
    return { seals };
  });
  expect((await Promise.all(seals)).toSorted()).toEqual([0, 3]);
  expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 claimed Sealed", "3 bought Sealed", "4 expired Sealed"]);
});

it("a void seals earlier Pending events before its own, and a waiting sealVoucher then seals nothing", async () => {
  const { id, code } = await issue();
  await appendPending(id, THREE.slice(0, 1));
  const { seal, voiding } = await whileLocked(db, [id], async () => {
    const voiding = voidVoucher(provisioning(db), partner.organizationId, code, "printed twice");
    await untilWaiting(db, 1);
    const seal = sealVoucher(one, id);
    await untilWaiting(db, 2);
    return { seal, voiding };
  });
  await voiding;
  expect(await seal).toBe(0);
  expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 claimed Sealed", "3 voided Sealed"]);
});

const submit = (voucherIds: readonly string[]) =>
  Promise.all(voucherIds.map((voucherId) => runSealJob(one, { voucherId }).catch((error: Error) => error.message)));

const issueIds = async (count: number) => {
  const ids: string[] = [];
  while (ids.length < count) ids.push((await issue()).id);
  return ids as [string, string, string];
};

it("concurrent seal jobs share one transaction, even two jobs of one voucher", async () => {
  const ids = await issueIds(3);
  for (const [n, id] of ids.entries()) await appendPending(id, THREE.slice(0, n + 1));
  expect(await submit([...ids, ids[2]])).toEqual([1, 2, 3, 0].map((sealed) => ({ sealed })));
  const { rows } = await db.query(
    `SELECT xmin::text FROM voucher_events WHERE voucher_id = ANY ($1) AND sequence > 1
      UNION SELECT xmin::text FROM vouchers WHERE id = ANY ($1)`,
    [ids],
  );
  expect(rows).toHaveLength(1);
});

it("a seal job whose voucher is locked delays no other job, and succeeds after the lock", async () => {
  const ids = await issueIds(2);
  for (const id of ids) await appendPending(id, THREE.slice(0, 1));
  const { waits } = await whileLocked(db, ids.slice(0, 1), async () => {
    const [waits, sealed] = ids.map((voucherId) => runSealJob(one, { voucherId }));
    expect(await sealed).toEqual({ sealed: 1 });
    return { waits };
  });
  expect(await waits).toEqual({ sealed: 1 });
});

it("seal jobs succeed although another job of the same batch has a broken chain", async () => {
  const ids = await issueIds(3);
  for (const id of ids) await appendPending(id, THREE.slice(0, 1));
  // An event is missing between the last sealed event and the Pending one.
  await appendPending(ids[1], THREE.slice(1, 2), 4);
  expect(await submit(ids)).toEqual([{ sealed: 1 }, expect.stringMatching(/^cannot seal event 4/), { sealed: 1 }]);
  // Completes the chain, because the file ends with a check of all chains.
  await appendPending(ids[1], THREE.slice(2), 3);
  await db.query("UPDATE vouchers SET last_sequence = 4 WHERE id = $1", [ids[1]]);
  expect(await submit([ids[1]])).toEqual([{ sealed: 3 }]);
});

it("a redeem seals Pending events and then appends its own event, in one transaction", async () => {
  const { id } = await issue();
  await appendPending(id, THREE.slice(0, 2));
  expect(await redeem(one, id)).toMatchObject({ kind: "redeemed" });
  expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 claimed Sealed", "3 bought Sealed", "4 redeemed Sealed"]);
  const { rows } = await db.query<{ transaction: string }>(
    `SELECT xmin::text AS transaction FROM voucher_events WHERE voucher_id = $1 AND sequence > 1
        UNION SELECT xmin::text FROM vouchers WHERE id = $1
        UNION SELECT xmin::text FROM redemptions WHERE voucher_id = $1`,
    [id],
  );
  expect(rows).toHaveLength(1);
});

it.each([
  ["leaves nothing to seal for a later seal job", true, 0],
  ["appends its event after those that a seal job sealed first", false, 3],
])("a redeem of a voucher with Pending events %s", async (_, redeemFirst, sealed) => {
  const { id } = await issue();
  await appendPending(id, THREE);
  const begun: Partial<{ redeem: ReturnType<typeof redeem>; seal: Promise<number> }> = {};
  await whileLocked(db, [id], async () => {
    if (redeemFirst) begun.redeem = redeem(one, id);
    else begun.seal = sealVoucher(other, id);
    await untilWaiting(db, 1, "worker");
    begun.seal ??= sealVoucher(other, id);
    begun.redeem ??= redeem(one, id);
    await untilWaiting(db, 2, "worker");
  });
  expect(await begun.redeem).toMatchObject({ kind: "redeemed" });
  expect(await begun.seal).toBe(sealed);
  expect(await readRecorded(db, id)).toMatchObject({ lastSequence: 5, sealedSequence: 5 });
});

it("a batch of redeem jobs seals the Pending events of each voucher in the voucher's own chain", async () => {
  const ids = await issueIds(3);
  for (const [n, id] of ids.entries()) await appendPending(id, THREE.slice(0, n));
  const replies = await Promise.all(ids.map((id) => redeem(one, id)));
  expect(replies).toMatchObject(ids.map(() => ({ kind: "redeemed" })));
  expect(await Promise.all(ids.map(chainOf))).toEqual([
    ["1 issued Sealed", "2 redeemed Sealed"],
    ["1 issued Sealed", "2 claimed Sealed", "3 redeemed Sealed"],
    ["1 issued Sealed", "2 claimed Sealed", "3 bought Sealed", "4 redeemed Sealed"],
  ]);
});

it("a refused redeem leaves Pending events to the next seal job", async () => {
  const { id } = await issue({ validUntil: new Date(Date.now() - 1_000) });
  await appendPending(id, ["voucher.instance.claimed"]);
  expect(await redeem(one, id)).toEqual({ kind: "refused", code: "voucher_expired" });
  expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 claimed Pending"]);
  expect(await sealVoucher(other, id)).toBe(1);
});

/**
 * Appends Pending events to an Active voucher's chain as other operations do, from a sequence or after the last event.
 */
async function appendPending(voucherId: string, eventTypes: readonly EventType[], from?: number): Promise<void> {
  const occurredAt = await databaseTime(db);
  await inTransaction(db, async (tx) => {
    await lockRows(tx, [voucherId]);
    for (const [n, eventType] of eventTypes.entries()) {
      const { rows } = await tx.query<{ sequence: number }>(
        `UPDATE vouchers SET last_sequence = coalesce($2, last_sequence + 1)
          WHERE id = $1 RETURNING last_sequence AS sequence`,
        [voucherId, from],
      );
      const event = {
        voucherId,
        sequence: rows[0]?.sequence as number,
        eventType,
        occurredAt,
        actorConnectedId: "user-1",
        actorIsEmployee: n % 2 === 0,
        data: { nonce: String(n).padStart(32, "0"), place: n, priceUsd: 40.25, word: "Gutschein für Ünal €" },
      };
      await write(tx, insertPendingEvents([event]));
    }
  });
}

async function chainOf(voucherId: string): Promise<string[]> {
  const { events } = await readRecorded(db, voucherId);
  return events.map(
    ({ sequence, eventType, sealStatus }) => `${sequence} ${eventType.split(".").at(-1)} ${sealStatus}`,
  );
}

function redeem(ctx: WorkerContext, voucherId: string) {
  return runRedeemJob(ctx, newAttempt(voucherId), redeemJob(partner, keys.till.id, voucherId, `ref-${voucherId}`));
}
