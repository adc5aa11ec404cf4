import { expect, it, vi } from "vitest";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { partnerClient } from "../../support/client.ts";
import { countWaiting, untilPast, whileLocked } from "../../support/outside-transaction.ts";
import { countJobs, newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import { scrape } from "../../support/scrape.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner } from "../../support/supply.ts";
import { inTime, until, untilOr } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const service = useService({ contexts: 1, env: { METRICS_PORT: "0", REDEEM_WAIT_MS: "60000" } });
const { api, servers, partner, stranger, keys, till, issue } = service;

const reuses = async () => (await scrape(api.metricsUrl)).value("voucher_redeem_reference_reused_total") ?? 0;

type First = Awaited<ReturnType<typeof redeemed>>;

it.each<[string, boolean, (first: First) => Promise<object> | object]>([
  ["an Active voucher", true, async () => ({ code: (await issue()).code })],
  ["a voucher that is redeemed too", true, async () => ({ code: (await redeemed()).code })],
  [
    "an expired voucher",
    true,
    async () => ({ code: (await issue({ validUntil: new Date(Date.now() - 1_000) })).code }),
  ],
  ["another organization's voucher", true, async () => ({ code: (await issueVoucher(servers.db, stranger)).code })],
  ["an unknown code", true, () => ({ code: "7Q4K-9MZX-2HTB-W8RC" })],
  ["a malformed code", true, () => ({ code: "?" })],
  ["a live ticket of another", true, async () => ({ ticket: (await till.reserve((await issue()).code)).body.ticket })],
  ["a consumed ticket of another voucher", true, async () => ({ code: (await redeemed()).ticket })],
  ["an unknown ticket", true, () => ({ ticket: "rsv_unheard-of" })],
  ["a code in the field of tickets", true, async () => ({ ticket: (await issue()).code })],
  ["its own code", false, ({ code }) => ({ code })],
  ["its own code in another spelling", false, ({ code }) => ({ code: ` ${code.toLowerCase().replaceAll("-", " ")}` })],
  ["its own ticket", false, ({ ticket }) => ({ ticket })],
  ["its own ticket in the field of codes", false, ({ ticket }) => ({ code: ticket })],
])("a redeem with a used reference and %s gets the first result; otherVoucher: %s", async (_, isOther, name) => {
  const first = await redeemed();
  const named = await name(first);
  const before = await reuses();
  const { status, body } = await till.redeem({ ...named, externalRef: first.externalRef });
  expect({ status, body }).toStrictEqual({
    status: 200,
    body: { ...first.body, alreadyConfirmed: true, ...(isOther && { otherVoucher: true }) },
  });
  expect(await reuses()).toBe(before + Number(isOther));
});

it("a reused reference in a sandbox answers otherVoucher as in a live organization, but causes no alert", async () => {
  const sandbox = await makePartner(servers.db, { sandbox: true });
  const client = partnerClient(api.url, (await makeKey(servers.db, sandbox.organizationId)).key);
  const [first, second] = await issueVouchers(servers.db, sandbox, 2);
  expect((await client.redeem({ code: first?.code, externalRef: "once" })).status).toBe(200);
  const before = await reuses();
  const { body } = await client.redeem({ code: second?.code, externalRef: "once" });
  expect(body).toMatchObject({ otherVoucher: true, sandbox: true });
  expect(await reuses()).toBe(before);
});

it("over the limit of unknown codes, a redeemed reference answers otherVoucher to any other code", async () => {
  const wary = await service.startApi({ MISS_LIMIT_PER_MINUTE: "1" });
  const client = partnerClient(wary.url, (await makeKey(servers.db, partner.organizationId)).key);
  const first = await redeemed();
  expect((await client.lookUp("7Q4K-9MZX-2HTB-W8RC")).status).toBe(404);
  expect((await client.lookUp(first.code)).status).toBe(429);
  const retry = async (named: object) => (await client.redeem({ ...named, externalRef: first.externalRef })).body;
  const same = { ...first.body, alreadyConfirmed: true };
  expect(await retry({ code: first.code.toLowerCase() })).toStrictEqual(same);
  expect(await retry({ ticket: first.ticket })).toStrictEqual(same);
  const other = { ...same, otherVoucher: true };
  expect(await retry({ code: (await issue()).code })).toStrictEqual(other);
  for (const code of ["?", "7Q4K-9MZX-2HTB-W8RC"]) expect(await retry({ code })).toStrictEqual(other);
});

/** Redeems a new voucher under a reference directly in a worker, without the API and its queue. */
async function overtake(externalRef: string): Promise<object> {
  const { id } = await issue();
  const job = redeemJob(partner, keys.till.id, id, externalRef);
  expect(await runRedeemJob(service.contexts[0], newAttempt(id), job)).toMatchObject({ kind: "redeemed" });
  return { status: 200, body: { alreadyConfirmed: true, otherVoucher: true, voucherInstanceId: id } };
}

it("a redeem answers otherVoucher if another call uses its reference while its job waits", async () => {
  const { id, code } = await issue();
  const { reply, answer } = await whileLocked(servers.db, [id], async () => {
    const reply = till.redeem({ code, externalRef: "overtaken-in-the-worker" });
    await until(async () => (await countWaiting(servers.db, "worker")) === 1);
    return { reply, answer: await overtake("overtaken-in-the-worker") };
  });
  expect(await reply).toMatchObject(answer);
});

it("a redeem without a reply answers otherVoucher if another call has used its reference", async () => {
  const hasty = await service.startApi({ REDEEM_WAIT_MS: "1000" });
  const client = partnerClient(hasty.url, keys.rival.key);
  const overtakeInTime = async () => {
    const { id, code } = await issue();
    const externalRef = `overtaken-after-the-wait-${id}`;
    return whileLocked(servers.db, [id], async () => {
      const reply = client.redeem({ code, externalRef });
      const answer = await inTime(1_000, async () => {
        const hasJob = await untilOr(reply, async () => (await countJobs(servers, "redeem")) > 0);
        return hasJob && overtake(externalRef);
      });
      return answer && { reply: await reply, answer };
    });
  };
  const { reply, answer } = await until(overtakeInTime);
  expect(reply).toMatchObject(answer);
});

it("a redeem of an expired voucher answers otherVoucher if its reference is used before the refusal", async () => {
  const { code } = await issue({ validUntil: new Date(Date.now() + 1_000) });
  await untilPast(servers.db, new Date(Date.now() + 1_000));
  // The reference is used between the API's first read, which finds no redemption, and its second read.
  let answer = {};
  const submit = vi.spyOn(api.ctx.referenceEnds, "submit").mockImplementationOnce(async (request) => {
    submit.mockRestore();
    answer = await overtake("overtaken-by-the-end");
    return api.ctx.referenceEnds.submit(request);
  });
  const { status, body } = await till.redeem({ code, externalRef: "overtaken-by-the-end" });
  expect({ status, body }).toMatchObject(answer);
});

it("a reference that an earlier release stored is found by its text, and redeems nothing again", async () => {
  const [ctx] = service.contexts;
  const [stored, sent] = ["straße e\u0301 1", "straße é 1"];
  const first = await issue();
  // Makes a job as the earlier release did.
  const job = (id: string, ref: string) => redeemJob(partner, keys.till.id, id, ref);
  expect(await runRedeemJob(ctx, newAttempt(first.id), job(first.id, stored))).toMatchObject({ kind: "redeemed" });
  const read = await till.redemption(stored);
  expect([read.status, read.body.voucherInstanceId]).toEqual([200, first.id]);
  const { redemptions } = (await till.redemptions({ externalRef: ` ${stored} ` })).body;
  expect(redemptions.map((one: { voucherInstanceId: string }) => one.voucherInstanceId)).toEqual([first.id]);
  expect((await till.redeem({ code: first.code, externalRef: stored })).body).toEqual(read.body);
  const other = await issue();
  const answer = await till.redeem({ code: other.code, externalRef: stored });
  expect(answer.body).toEqual({ ...read.body, otherVoucher: true });
  // The earlier release treated another spelling as another reference.
  expect((await till.redemption(sent)).status).toBe(404);

  // The queue still has the earlier release's attempt when this release gets a retry with another code.
  const [late, retried] = [await issue(), await issue()];
  const waiting = job(late.id, "e\u0301 2");
  expect((await till.redeem({ code: retried.code, externalRef: "e\u0301 2" })).body).toMatchObject({
    alreadyConfirmed: false,
  });
  expect(await runRedeemJob(ctx, newAttempt(late.id), waiting)).toEqual({ kind: "late" });
  expect((await till.redemption("é 2")).body.voucherInstanceId).toBe(retried.id);
  expect((await till.lookUp(late.code)).body.voucher.status).toBe("Active");
});

/** Redeems a voucher by a ticket, under a new reference. */
async function redeemed() {
  const voucher = await issue();
  const externalRef = `first-${voucher.id}`;
  const { ticket } = (await till.reserve(voucher.code)).body;
  const { status, body } = await till.redeem({ ticket, externalRef });
  expect({ status, other: body.otherVoucher }).toEqual({ status: 200, other: undefined });
  return { ...voucher, ticket: ticket as string, externalRef, body };
}
