import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { announceVoid } from "../../src/cli/announce-void.ts";
import { openWorkerContext, type WorkerContext } from "../../src/context.ts";
import { insertPendingEvent } from "../../src/db/events.ts";
import { inTransaction, write } from "../../src/db/transaction.ts";
import type { EventType } from "../../src/domain/chain.ts";
import { sealQueue } from "../../src/queues/catalog.ts";
import { openQueue } from "../../src/queues/open-queue.ts";
import { runRedeemJob } from "../../src/services/burn-vouchers.ts";
import { sealVoucher } from "../../src/services/seal-events.ts";
import { voidVoucher } from "../../src/services/void-voucher.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { verifyServedChain } from "../support/independent-verifier.ts";
import { assertInvariants } from "../support/invariants.ts";
import { databaseTime, lockRows, untilWaiting, whileLocked } from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { countJobs, newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, testConfig } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, provisioning, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

let servers: TestServers;
let api: TestApi;
let one: WorkerContext;
let other: WorkerContext;
let partner: TestPartner;
let keyId: string;
let till: PartnerClient;

beforeAll(async () => {
  servers = await openTestServers();
  api = await startApi(servers);
  [one, other] = [openWorkerContext(testConfig(servers)), openWorkerContext(testConfig(servers))];
  partner = await makePartner(servers.db);
  const key = await makeKey(servers.db, partner.organizationId);
  keyId = key.id;
  till = partnerClient(api.url, key.key);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all([one.close(), other.close(), api.close()]);
  await servers.close();
});

/** Appends Pending events to an Active voucher's chain, as an operation outside the redeem job does. */
async function appendPending(voucherId: string, eventTypes: readonly EventType[]): Promise<void> {
  const occurredAt = await databaseTime(servers.db);
  await inTransaction(servers.db, async (tx) => {
    await lockRows(tx, [voucherId]);
    for (const [n, eventType] of eventTypes.entries()) {
      const { rows } = await tx.query<{ sequence: number }>(
        "UPDATE vouchers SET last_sequence = last_sequence + 1 WHERE id = $1 RETURNING last_sequence AS sequence",
        [voucherId],
      );
      const event = insertPendingEvent({
        voucherId,
        sequence: rows[0]?.sequence as number,
        eventType,
        occurredAt,
        actorConnectedId: "user-1",
        actorIsEmployee: n % 2 === 0,
        data: { nonce: String(n).padStart(32, "0"), place: n, priceUsd: 40.25, word: "Gutschein für Ünal €" },
      });
      await write(tx, event);
    }
  });
}

const THREE: EventType[] = ["voucher.instance.claimed", "voucher.instance.bought", "voucher.instance.expired"];

async function chainOf(voucherId: string): Promise<string[]> {
  const { events } = await readRecorded(servers.db, voucherId);
  return events.map(
    ({ sequence, eventType, sealStatus }) => `${sequence} ${eventType.split(".").at(-1)} ${sealStatus}`,
  );
}

async function voidByCode(code: string) {
  return voidVoucher(provisioning(servers.db), partner.organizationId, code, "printed twice");
}

function burn(ctx: WorkerContext, voucherId: string) {
  return runRedeemJob(ctx, newAttempt(voucherId), redeemJob(partner, keyId, voucherId, `ref-${voucherId}`));
}

describe("a voided voucher's event", () => {
  it("is served Pending without hash and payload until the seal worker seals it behind its predecessor", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const voided = await voidByCode(code);
    const before = (await till.events(code)).body.events;
    expect(before[1]).toMatchObject({ sealStatus: "Pending", recordHash: null, previousHash: null, payload: null });
    await announceVoid(servers, voided);
    const workers = await startWorkers(servers);
    await until(async () => (await readRecorded(servers.db, id)).sealedSequence === 2);
    await workers.close();
    const { events } = (await till.events(code)).body;
    expect(verifyServedChain(events)).toBeNull();
    expect(events[1]).toMatchObject({ eventType: "voucher.instance.voided", sealStatus: "Sealed" });
    expect(JSON.parse(events[1].payload)).toMatchObject({
      sequence: 2,
      occurredAt: before[1].occurredAt,
      data: { reason: "printed twice", nonce: expect.stringMatching(/^[0-9a-f]{32}$/) },
    });
  });

  it("is sealed once by however many seal jobs", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const voided = await voidByCode(code);
    for (let n = 0; n < 6; n++) await announceVoid(servers, voided);
    const workers = await Promise.all([startWorkers(servers), startWorkers(servers)]);
    await until(async () => (await countJobs(servers.redis, "seal")) === 0);
    await Promise.all(workers.map((worker) => worker.close()));
    const queue = openQueue(sealQueue, api.ctx.redis, api.ctx.log);
    const finished = (await queue.getCompleted()).filter((job) => job.data.voucherId === id);
    await queue.close();
    expect(finished.map((job) => job.returnvalue.sealed).toSorted()).toEqual([0, 0, 0, 0, 0, 1]);
    expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 voided Sealed"]);
  });
});

describe("a sealer", () => {
  it("seals several Pending events in the order of their sequence, saying what was recorded", async () => {
    const { id } = await issueVoucher(servers.db, partner);
    await appendPending(id, THREE);
    expect(await sealVoucher(one, id)).toBe(3);
    expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 claimed Sealed", "3 bought Sealed", "4 expired Sealed"]);
    const { events, sealedSequence } = await readRecorded(servers.db, id);
    expect(sealedSequence).toBe(4);
    expect(events.slice(1).map(({ data }) => data)).toEqual(
      [0, 1, 2].map((place) => ({
        nonce: String(place).padStart(32, "0"),
        place,
        priceUsd: 40.25,
        word: "Gutschein für Ünal €",
      })),
    );
  });

  it("seals nothing the second time", async () => {
    const { id } = await issueVoucher(servers.db, partner);
    await appendPending(id, THREE);
    await sealVoucher(one, id);
    const sealed = await readRecorded(servers.db, id);
    expect(await sealVoucher(one, id)).toBe(0);
    expect(await readRecorded(servers.db, id)).toEqual(sealed);
  });

  it("finds nothing to do for a voucher that is none", async () => {
    expect(await sealVoucher(one, "vch_none")).toBe(0);
  });

  it("leaves everything to another that was first at the row", async () => {
    const { id } = await issueVoucher(servers.db, partner);
    await appendPending(id, THREE);
    const { seals } = await whileLocked(servers.db, [id], async () => {
      const seals = [one, other].map((ctx) => sealVoucher(ctx, id));
      await untilWaiting(servers.db, 2, "worker");
      return { seals };
    });
    expect((await Promise.all(seals)).toSorted()).toEqual([0, 3]);
    expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 claimed Sealed", "3 bought Sealed", "4 expired Sealed"]);
  });

  it("does not reach into a void that is under way at the same voucher", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    await appendPending(id, THREE.slice(0, 1));
    const { seal, voiding } = await whileLocked(servers.db, [id], async () => {
      const voiding = voidByCode(code);
      await untilWaiting(servers.db, 1);
      const seal = sealVoucher(one, id);
      await untilWaiting(servers.db, 2);
      return { seal, voiding };
    });
    await voiding;
    expect(await seal).toBe(2);
    expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 claimed Sealed", "3 voided Sealed"]);
  });
});

describe("a redeem of a voucher with Pending events", () => {
  it("seals them and appends its own behind them in one transaction", async () => {
    const { id } = await issueVoucher(servers.db, partner);
    await appendPending(id, THREE.slice(0, 2));
    expect(await burn(one, id)).toMatchObject({ kind: "burnt" });
    expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 claimed Sealed", "3 bought Sealed", "4 redeemed Sealed"]);
    const { rows } = await servers.db.query<{ transaction: string }>(
      `SELECT xmin::text AS transaction FROM voucher_events WHERE voucher_id = $1 AND sequence > 1
        UNION SELECT xmin::text FROM vouchers WHERE id = $1 UNION SELECT xmin::text FROM redemptions WHERE voucher_id = $1`,
      [id],
    );
    expect(rows).toHaveLength(1);
  });

  it("leaves a seal job that comes late nothing to seal", async () => {
    const { id } = await issueVoucher(servers.db, partner);
    await appendPending(id, THREE);
    const { burning, seal } = await whileLocked(servers.db, [id], async () => {
      const burning = burn(one, id);
      await untilWaiting(servers.db, 1, "worker");
      const seal = sealVoucher(other, id);
      await untilWaiting(servers.db, 2, "worker");
      return { burning, seal };
    });
    expect(await burning).toMatchObject({ kind: "burnt" });
    expect(await seal).toBe(0);
    expect(await readRecorded(servers.db, id)).toMatchObject({ lastSequence: 5, sealedSequence: 5 });
  });

  it("appends behind what a seal job sealed while it waited for the row", async () => {
    const { id } = await issueVoucher(servers.db, partner);
    await appendPending(id, THREE);
    const { burning, seal } = await whileLocked(servers.db, [id], async () => {
      const seal = sealVoucher(other, id);
      await untilWaiting(servers.db, 1, "worker");
      const burning = burn(one, id);
      await untilWaiting(servers.db, 2, "worker");
      return { burning, seal };
    });
    expect(await seal).toBe(3);
    expect(await burning).toMatchObject({ kind: "burnt" });
    expect(await readRecorded(servers.db, id)).toMatchObject({ lastSequence: 5, sealedSequence: 5 });
  });

  it("seals those of several vouchers of its batch, each in its own chain", async () => {
    const vouchers = await Promise.all([1, 2, 3].map(() => issueVoucher(servers.db, partner)));
    for (const [n, { id }] of vouchers.entries()) await appendPending(id, THREE.slice(0, n));
    const replies = await Promise.all(vouchers.map(({ id }) => burn(one, id)));
    expect(replies).toMatchObject(vouchers.map(() => ({ kind: "burnt" })));
    expect(await Promise.all(vouchers.map(({ id }) => chainOf(id)))).toEqual([
      ["1 issued Sealed", "2 redeemed Sealed"],
      ["1 issued Sealed", "2 claimed Sealed", "3 redeemed Sealed"],
      ["1 issued Sealed", "2 claimed Sealed", "3 bought Sealed", "4 redeemed Sealed"],
    ]);
  });

  it("that is refused leaves them Pending for the next sealer", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    await voidByCode(code);
    expect(await burn(one, id)).toEqual({ kind: "refused", code: "voucher_voided" });
    expect(await chainOf(id)).toEqual(["1 issued Sealed", "2 voided Pending"]);
    expect(await sealVoucher(other, id)).toBe(1);
  });
});
