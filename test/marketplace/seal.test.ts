import { beforeAll, expect, it } from "vitest";
import type { IssuedVoucher } from "../../src/acts/issue-batch.ts";
import { sealQueue } from "../../src/core/chain/seal-job.ts";
import { sweep } from "../../src/open/open-sweep.ts";
import { prepare } from "../../workers/seal.ts";
import { partnerClient, send } from "../support/client.ts";
import { expectFairRound } from "../support/fair-rounds.ts";
import { verifyServedChain } from "../support/independent-verifier.ts";
import {
  makeContract,
  makeMember,
  makeOffer,
  makeReferral,
  newPayment,
  newUser,
  outcome,
  signedIn,
} from "../support/marketplace.ts";
import { bypassTriggers } from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { newAttempt } from "../support/redeem-jobs.ts";
import { sealVoucher } from "../support/seal-voucher.ts";
import { itOnOneRedis } from "../support/servers.ts";
import { makeKey, type TestPartner } from "../support/supply.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { START_MS, until, untilStarted } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const service = useService({ workers: [{ WORKER_QUEUES: "redeem" }], contexts: 1, users: true });
const {
  api,
  servers,
  issuer: key,
  contexts: [ctx],
} = service;
/** A voucher without a Pending event. */
let idle: IssuedVoucher;

beforeAll(async () => {
  await ctx.deployment.ready();
  await untilStarted(() => ctx.redis.status === "ready");
  idle = await service.issue();
});

it("a purchase's event is sealed before the answer, and only the partner's history has its details", async () => {
  const user = newUser("käufer");
  const client = await signedIn(api.url, key, user);
  const buy = async () => {
    const offer = await makeOffer(servers.db, 1, { audience: "ReferrerOnly" });
    const contractId = await makeContract(servers.db, offer.brandId, user);
    const paymentRef = newPayment();
    const startedAt = performance.now();
    const { voucher } = (await client.buyListing(offer.listingId, { paymentRef })).body;
    // A purchase answers after a second even if its event is not sealed yet. Then the test buys again.
    return performance.now() - startedAt > 1_000 ? null : { offer, contractId, paymentRef, voucher };
  };
  const { offer, contractId, paymentRef, voucher } = await whileSealing(() => until(buy));
  expect(await statuses(voucher.id)).toEqual(["issued Sealed", "bought Sealed"]);
  const [, bought] = await serve(offer, voucher.code);
  const event = { sequence: 2, actorConnectedId: user, actorIsEmployee: false };
  const sealed = { eventType: "voucher.instance.bought", code: "VCH003", sealStatus: "Sealed" };
  expect(bought).toMatchObject({ ...event, ...sealed });
  const payload = JSON.parse(bought.payload);
  expect(payload).toMatchObject({ ...event, entityId: voucher.id });
  expect(payload.data).toStrictEqual({
    nonce: expect.stringMatching(/^[0-9a-f]{32}$/),
    voucherCode: voucher.code,
    serial: 1,
    audience: "ReferrerOnly",
    audienceRule: "active_contract",
    contractId,
    paymentRef,
    pricePaidUsd: 40.25,
  });
  const { body } = await send("GET", `${api.url}/integrity/events/VoucherInstance/${voucher.id}`);
  expect(JSON.stringify(body)).not.toContain(user);
  expect(body.events[1]).toMatchObject({ eventType: sealed.eventType, recordHash: bought.recordHash });
});

it("the event of a claim by link names the referrer, the contract and the link", async () => {
  const offer = await makeOffer(servers.db, 1, { audience: "ReferrerOnly" });
  const { code, contractId, referrerId } = await makeReferral(servers.db, offer);
  const user = newUser();
  const client = await signedIn(api.url, key, user);
  const { voucher } = (await whileSealing(() => client.claimByLink(code))).body;
  await sealVoucher(ctx, voucher.id);
  const [, claimed] = await serve(offer, voucher.code);
  const sealed = { eventType: "voucher.instance.claimed", code: "VCH002", sealStatus: "Sealed" };
  expect(claimed).toMatchObject({ ...sealed, actorConnectedId: user, actorIsEmployee: false });
  const { data } = JSON.parse(claimed.payload);
  expect(data).toMatchObject({
    audience: "ReferrerOnly",
    audienceRule: "referral_link",
    contractId,
    referrer: referrerId,
    referralLink: code,
  });
  expect(data).not.toHaveProperty("paymentRef");
});

it.each([
  ["owner", "ReferrerOnly", "brand_owner", true],
  ["owner", "OpenToAll", "open_to_all", true],
  ["employee", "OpenToAll", "open_to_all", true],
  [null, "OpenToAll", "open_to_all", false],
] as const)("a claim by role %s (%s) records rule %s, isEmployee %s", async (role, audience, rule, isEmployee) => {
  const offer = await makeOffer(servers.db, 1, { audience });
  const user = newUser();
  if (role !== null) await makeMember(servers.db, { organizationId: offer.organizationId, userId: user, role });
  const client = await signedIn(api.url, key, user);
  const { voucher } = (await whileSealing(() => client.claimProduct(offer.productId))).body;
  await sealVoucher(ctx, voucher.id);
  const [, claimed] = await serve(offer, voucher.code);
  expect(claimed).toMatchObject({ actorConnectedId: user, actorIsEmployee: isEmployee });
  const { data } = JSON.parse(claimed.payload);
  expect(data).toMatchObject({ audience, audienceRule: rule });
  for (const field of ["contractId", "referrer", "referralLink"]) expect(data).not.toHaveProperty(field);
});

it("the event of a claim or purchase stays Pending without a worker, and a redeem seals the event first", async () => {
  const offer = await makeOffer(servers.db, 1);
  const client = await signedIn(api.url, key);
  const reply = await client.buyListing(offer.listingId);
  expect(outcome(reply)).toBe("200");
  const { voucher } = reply.body;
  expect(await statuses(voucher.id)).toEqual(["issued Sealed", "bought Pending"]);
  expect((await serve(offer, voucher.code))[1]).toMatchObject({
    payload: null,
    recordHash: null,
    previousHash: null,
  });
  const redeemed = await (await makeTill(offer)).redeem({ code: voucher.code, externalRef: newPayment() });
  expect(redeemed.status).toBe(200);
  expect(await statuses(voucher.id)).toEqual(["issued Sealed", "bought Sealed", "redeemed Sealed"]);
  await serve(offer, voucher.code);
});

itOnOneRedis.each([
  ["away", "cut"],
  ["hanging", "jam"],
] as const)(
  "a claim or purchase does not wait when Redis is %s, and the sweeper has its event sealed later",
  async (_name, fault) => {
    const wire = await openTcpProxy(servers.redisUrl);
    servers.onClose(() => wire.close());
    const wired = await service.startApi({ REDIS_URL: wire.url });
    const offer = await makeOffer(servers.db, 2);
    const { code } = await makeReferral(servers.db, offer);
    const client = await signedIn(wired.url, key);
    wire[fault]();
    const [bought, claimed] = await Promise.all([client.buyProduct(offer.productId), client.claimByLink(code)]).finally(
      () => wire.mend(),
    );
    for (const reply of [bought, claimed])
      expect(reply).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
    const ids = [bought, claimed].map(({ body }) => body.voucher.id);
    for (const id of ids) expect((await statuses(id)).at(-1)).toMatch(/Pending$/);
    // Makes the event some seconds older. The sweeper skips younger events, because their job may still run.
    await bypassTriggers(
      servers.db,
      `UPDATE voucher_events SET occurred_at = now() - interval '6 seconds'
        WHERE voucher_id = ANY ($1) AND seal_status = 'Pending'`,
      [ids],
    );
    const { items, failures } = await sweep(ctx);
    expect({ failures, enough: items.requestSeals >= 2 }).toEqual({ failures: {}, enough: true });
    await whileSealing(async () => {
      for (const id of ids) await until(async () => (await statuses(id)).at(-1)?.endsWith("Sealed"));
    });
    for (const { body } of [bought, claimed]) await serve(offer, body.voucher.code);
    await wired.close();
  },
);

it("a claim or purchase succeeds without a seal job when the seal queue is full", async () => {
  const waitingMax = Math.ceil(sealQueue.waitingMax / servers.shards.length);
  const claim = async () => {
    const offer = await makeOffer(servers.db, 1);
    const client = await signedIn(api.url, key);
    const id = offer.vouchers[0]?.id ?? "";
    const wait = `${servers.shardOf(id).prefix}:${sealQueue.name}:wait`;
    await servers.redis.del(wait);
    await servers.redis.rpush(wait, ...Array.from({ length: waitingMax }, (_, n) => `job-${n}`));
    const hasRoom = () => api.ctx.sealQueue.askForPlace({ voucherId: id });
    await until(() => !hasRoom());
    const reply = await client.claimProduct(offer.productId);
    const waiting = await servers.redis.llen(wait);
    await servers.redis.del(wait);
    expect(outcome(reply)).toBe("200");
    expect(await statuses(reply.body.voucher.id)).toEqual(["issued Sealed", "claimed Pending"]);
    await until(hasRoom);
    return waiting;
  };
  // The API measures the queue's length at most once a second. On a busy machine, the claims may take longer.
  await expectFairRound(5, claim, (waiting) => waiting === waitingMax);
});

it("the event of a claim or purchase is sealed before the voucher's expired event", async () => {
  const offer = await makeOffer(servers.db, 2);
  const { voucher } = (await (await signedIn(api.url, key)).claimProduct(offer.productId)).body;
  await sealVoucher(ctx, voucher.id);
  await servers.db.query("UPDATE batches SET valid_until = now() WHERE id = $1", [offer.batchId]);
  const left = offer.vouchers.find(({ id }) => id !== voucher.id);
  await until(async () => {
    await sweep(ctx);
    return (await statuses(voucher.id)).length === 3;
  });
  expect(await statuses(voucher.id)).toEqual(["issued Sealed", "claimed Sealed", "expired Sealed"]);
  expect(await statuses(left?.id ?? "")).toEqual(["issued Sealed", "expired Sealed"]);
});

async function whileSealing<T>(work: () => Promise<T>): Promise<T> {
  const sealing = prepare(ctx).start();
  try {
    // An acquisition waits a second for its seal. The first job of a new worker may take longer.
    const { id: voucherId } = idle;
    expect(await api.ctx.sealQueue.addAndWait(newAttempt(voucherId), { voucherId }, START_MS)).toMatchObject({
      kind: "reply",
    });
    return await work();
  } finally {
    await sealing.close();
  }
}

async function makeTill({ organizationId }: TestPartner) {
  return partnerClient(api.url, (await makeKey(servers.db, organizationId)).key);
}

/** Returns the voucher's chain, as the partner's route returns it. */
async function serve(partner: TestPartner, code: string) {
  const { events } = (await (await makeTill(partner)).events(code)).body;
  expect(verifyServedChain(events)).toBeNull();
  return events;
}

const statuses = async (voucherId: string) =>
  (await readRecorded(servers.db, voucherId)).events.map(
    ({ eventType, sealStatus }) => `${eventType.split(".").at(-1)} ${sealStatus}`,
  );
