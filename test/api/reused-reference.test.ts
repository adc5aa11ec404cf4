import { beforeAll, describe, expect, it, vi } from "vitest";
import { runRedeemJob } from "../../src/services/partner/redeem-committer.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { countWaiting, untilPast, whileLocked } from "../support/outside-transaction.ts";
import { countJobs, newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { scrape } from "../support/scrape.ts";
import type { TestServers } from "../support/servers.ts";
import { openWorkerContext, startApi, type TestApi, testConfig, type WorkerContext } from "../support/service.ts";
import { startService } from "../support/start-service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

let servers: TestServers;
let api: TestApi;
let partner: TestPartner;
let keyId: string;
let till: PartnerClient;

beforeAll(async () => {
  const service = await startService({ workers: 1, env: { METRICS_PORT: "0", REDEEM_WAIT_MS: "60000" } });
  ({ servers, partner, keyId } = service);
  [api, till] = [service.apis[0] as TestApi, service.tills[0] as PartnerClient];
  return service.close;
});

const issue = (validUntil?: Date) => issueVoucher(servers.db, partner, validUntil === undefined ? {} : { validUntil });
const reuses = async () => (await scrape(api.metricsUrl)).value("voucher_redeem_reference_reused_total") ?? 0;

/** A voucher redeemed by a ticket, under a new reference. */
async function redeemed() {
  const voucher = await issue();
  const externalRef = `first-${voucher.id}`;
  const { ticket } = (await till.reserve(voucher.code)).body;
  const { status, body } = await till.redeem({ ticket, externalRef });
  expect({ status, other: body.otherVoucher }).toEqual({ status: 200, other: undefined });
  return { ...voucher, ticket: ticket as string, externalRef, body };
}

describe("a redeem whose reference has redeemed another voucher", () => {
  const OTHERS: Record<string, () => Promise<Record<string, unknown>>> = {
    "an Active voucher": async () => ({ code: (await issue()).code }),
    "a voucher that is redeemed too": async () => ({ code: (await redeemed()).code }),
    "an expired voucher": async () => ({ code: (await issue(new Date(Date.now() - 1_000))).code }),
    "another organization's voucher": async () => ({
      code: (await issueVoucher(servers.db, await makePartner(servers.db))).code,
    }),
    "an unknown code": async () => ({ code: "7Q4K-9MZX-2HTB-W8RC" }),
    "a malformed code": async () => ({ code: "?" }),
    "a live ticket of another voucher": async () => ({
      ticket: (await till.reserve((await issue()).code)).body.ticket,
    }),
    "a consumed ticket of another voucher": async () => ({ code: (await redeemed()).ticket }),
    "an unknown ticket": async () => ({ ticket: "rsv_unheard-of" }),
    "a code in the field of tickets": async () => ({ ticket: (await issue()).code }),
  };

  it.each(
    Object.entries(OTHERS),
  )("answers 200 with the first result and otherVoucher, and counts it: %s", async (_, name) => {
    const first = await redeemed();
    const named = await name();
    const before = await reuses();
    const { status, body } = await till.redeem({ ...named, externalRef: first.externalRef });
    expect({ status, body }).toEqual({
      status: 200,
      body: { ...first.body, alreadyConfirmed: true, otherVoucher: true },
    });
    expect(await reuses()).toBe(before + 1);
  });
});

it("a sandbox's reused reference is answered alike and not counted, so that tests alarm no operator", async () => {
  const sandbox = await makePartner(servers.db, { sandbox: true });
  const client = partnerClient(api.url, (await makeKey(servers.db, sandbox.organizationId)).key);
  const [first, second] = await issueVouchers(servers.db, sandbox, 2);
  expect((await client.redeem({ code: first?.code, externalRef: "once" })).status).toBe(200);
  const before = await reuses();
  const { body } = await client.redeem({ code: second?.code, externalRef: "once" });
  expect(body).toMatchObject({ otherVoucher: true, sandbox: true });
  expect(await reuses()).toBe(before);
});

describe("a redeem whose reference has redeemed the same voucher", () => {
  const SAME: Record<string, (first: { code: string; ticket: string }) => Record<string, unknown>> = {
    "the code": ({ code }) => ({ code }),
    "the code in another spelling": ({ code }) => ({ code: ` ${code.toLowerCase().replaceAll("-", " ")}` }),
    "the consumed ticket": ({ ticket }) => ({ ticket }),
    "the consumed ticket in the field of codes": ({ ticket }) => ({ code: ticket }),
  };

  it.each(Object.entries(SAME))("answers without otherVoucher and counts nothing: %s", async (_, name) => {
    const first = await redeemed();
    const before = await reuses();
    const { status, body } = await till.redeem({ ...name(first), externalRef: first.externalRef });
    expect({ status, body }).toStrictEqual({ status: 200, body: { ...first.body, alreadyConfirmed: true } });
    expect(await reuses()).toBe(before);
  });
});

it("a key with too many misses, for which no code is looked up, learns otherVoucher for other codes only", async () => {
  const wary = await startApi(servers, { MISS_LIMIT_PER_MINUTE: "1" });
  const client = partnerClient(wary.url, (await makeKey(servers.db, partner.organizationId)).key);
  const first = await redeemed();
  expect((await client.lookUp("7Q4K-9MZX-2HTB-W8RC")).status).toBe(404);
  expect((await client.lookUp(first.code)).status).toBe(429);
  const retry = (named: Record<string, unknown>) => client.redeem({ ...named, externalRef: first.externalRef });
  const same = { ...first.body, alreadyConfirmed: true };
  expect((await retry({ code: first.code.toLowerCase() })).body).toStrictEqual(same);
  expect((await retry({ ticket: first.ticket })).body).toStrictEqual(same);
  const other = { ...same, otherVoucher: true };
  expect((await retry({ code: (await issue()).code })).body).toStrictEqual(other);
  expect((await retry({ code: "?" })).body).toStrictEqual(other);
});

describe("a reference that another call confirms after the first read", () => {
  let outside: WorkerContext;

  beforeAll(async () => {
    outside = openWorkerContext(testConfig(servers));
    return () => outside.close();
  });

  /** Redeems a new voucher under a reference without the API and its queue. */
  async function overtake(externalRef: string): Promise<string> {
    const { id } = await issue();
    const job = redeemJob(partner, keyId, id, externalRef);
    expect(await runRedeemJob(outside, newAttempt(id), job)).toMatchObject({ kind: "redeemed" });
    return id;
  }

  it("answers otherVoucher when the worker finds it", async () => {
    const voucher = await issue();
    const { reply, id } = await whileLocked(servers.db, [voucher.id], async () => {
      const reply = till.redeem({ code: voucher.code, externalRef: "overtaken-in-the-worker" });
      await until(async () => (await countWaiting(servers.db, "worker")) === 1);
      return { reply, id: await overtake("overtaken-in-the-worker") };
    });
    expect(await reply).toMatchObject({
      status: 200,
      body: { alreadyConfirmed: true, otherVoucher: true, voucherInstanceId: id },
    });
  });

  it("answers otherVoucher when no worker replies and the reference is read after the wait", async () => {
    const hasty = await startApi(servers, { REDEEM_WAIT_MS: "1000" });
    const client = partnerClient(hasty.url, (await makeKey(servers.db, partner.organizationId)).key);
    const voucher = await issue();
    const { reply, id } = await whileLocked(servers.db, [voucher.id], async () => {
      const reply = client.redeem({ code: voucher.code, externalRef: "overtaken-after-the-wait" });
      await until(async () => (await countJobs(servers, "redeem")) > 0);
      const id = await overtake("overtaken-after-the-wait");
      return { reply: await reply, id };
    });
    expect(reply).toMatchObject({
      status: 200,
      body: { alreadyConfirmed: true, otherVoucher: true, voucherInstanceId: id },
    });
  });

  it("answers otherVoucher when the voucher has expired and the reference is read before its refusal", async () => {
    const voucher = await issue(new Date(Date.now() + 1_000));
    await untilPast(servers.db, new Date(Date.now() + 1_000));
    // The API finds no redemption at its first look; there is one when it reads the outcome.
    let firstId = "";
    const submit = vi.spyOn(api.ctx.referenceEnds, "submit").mockImplementationOnce(async (request) => {
      submit.mockRestore();
      firstId = await overtake("overtaken-by-the-end");
      return api.ctx.referenceEnds.submit(request);
    });
    const { status, body } = await till.redeem({ code: voucher.code, externalRef: "overtaken-by-the-end" });
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { alreadyConfirmed: true, otherVoucher: true, voucherInstanceId: firstId },
    });
  });
});
