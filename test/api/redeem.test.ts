import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { BASE_URL, startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";

let servers: TestServers;
let api: TestApi;
let worker: TestWorker;
let partner: TestPartner;
let till: PartnerClient;
let keyId: string;

beforeAll(async () => {
  servers = await openTestServers();
  [api, worker] = await Promise.all([startApi(servers), startWorkers(servers)]);
  partner = await makePartner(servers.db);
  const key = await makeKey(servers.db, partner.organizationId);
  keyId = key.id;
  till = partnerClient(api.url, key.key);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await api.close();
  await worker.close();
  await servers.close();
});

describe("POST /partner/vouchers/redeem", () => {
  it("burns a voucher by its code and answers everything the contract names", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const { status, body } = await till.redeem({ code: voucher.code, externalRef: "by-code", note: "Tisch 4" });
    expect(status).toBe(200);
    expect(body).toEqual({
      redeemed: true,
      alreadyConfirmed: false,
      voucherInstanceId: voucher.id,
      redeemCode: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$/),
      serial: voucher.serial,
      productName: "Pass",
      productKey: "pass",
      discountPriceUsd: 40.25,
      benefitMonths: 6,
      redeemedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      verifyUrl: `${BASE_URL}/integrity/events/VoucherInstance/${voucher.id}`,
    });
    const chain = await till.events(voucher.code);
    const burnt = JSON.parse(chain.body.events[1].payload);
    expect(burnt).toMatchObject({
      eventType: "voucher.instance.redeemed",
      code: "VCH004",
      occurredAt: body.redeemedAt,
      actorConnectedId: keyId,
      data: {
        note: "Tisch 4",
        externalRef: "by-code",
        redeemCode: body.redeemCode,
        ticket: null,
        voucherCode: voucher.code,
      },
    });
  });
});
