import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { webhookEvent } from "../../src/contract/webhooks.ts";
import { runRedeemJob } from "../../src/services/redeem/redeem-committer.ts";
import { newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startWorkers, type TestWorker } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { startReceiver, WEBHOOK_ENV, type WebhookReceiver } from "../support/webhook-receiver.ts";

let servers: TestServers;
let worker: TestWorker;
let receiver: WebhookReceiver;
let answer: Parameters<typeof startReceiver>[0];

beforeAll(async () => {
  servers = await openTestServers();
  receiver = await startReceiver((request) => answer?.(request) ?? 204);
  worker = await startWorkers(servers, WEBHOOK_ENV);
  servers.onClose(() => receiver.close());
});

afterAll(() => endService(servers));

async function redeem(partner: TestPartner, voucherId: string, externalRef: string) {
  const key = await makeKey(servers.db, partner.organizationId);
  return runRedeemJob(worker.ctx, newAttempt(voucherId), redeemJob(partner, key.id, voucherId, externalRef));
}

describe("a redemption", () => {
  it("is delivered to each endpoint of its organization that wants it, signed, with a thin body", async () => {
    const [partner, stranger] = [await makePartner(servers.db), await makePartner(servers.db)];
    const all = await receiver.addEndpoint(servers.db, partner.organizationId);
    const other = await receiver.addEndpoint(servers.db, partner.organizationId, ["voucher.instance.voided"]);
    const foreign = await receiver.addEndpoint(servers.db, stranger.organizationId);
    const voucher = await issueVoucher(servers.db, partner);
    const reply = await redeem(partner, voucher.id, "Bestellung № 1");
    await until(() => receiver.of(all).length === 1);
    const [request] = receiver.of(all);
    expect(request).toMatchObject({ isSigned: true, id: `${voucher.id}-2` });
    expect(webhookEvent.parse(request?.body)).toEqual(request?.body);
    expect(request?.body.data).toMatchObject({
      sequence: 2,
      externalRef: "Bestellung № 1",
      redeemCode: (reply as { redeemCode: string }).redeemCode,
    });
    expect(request?.text).not.toContain(voucher.code);
    await until(
      async () => (await servers.db.query("SELECT 1 FROM webhook_deliveries WHERE state = 'Delivered'")).rowCount === 1,
    );
    expect([...receiver.of(other), ...receiver.of(foreign)]).toEqual([]);
  });
});
