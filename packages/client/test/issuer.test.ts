import { afterEach, expect, it, vi } from "vitest";
import { whileLocked } from "../../../test/support/outside-transaction.ts";
import { issueTestBatch, makeKey } from "../../../test/support/supply.ts";
import { useService } from "../../../test/support/use-service.ts";
import { voucherClient } from "../src/index.ts";

const { api, db, partner } = useService({ workers: [], env: { ISSUER_API: "true" } });

afterEach(() => {
  vi.useRealTimers();
});

it("the client issues a batch once when responses get lost, reads its codes and voids it", async () => {
  const { key } = await makeKey(db, partner.organizationId, { scopes: ["voucher.issue"] });
  let lost = 0;
  const losing: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (!String(input).endsWith("/batches") || lost > 0) return response;
    lost += 1;
    throw new Error("the answer is lost");
  };
  const { issuer } = voucherClient({ baseUrl: api.url, apiKey: key, fetch: losing });
  const [brand] = await readAll(issuer.brands());
  const renamed = { id: String(brand?.id), name: "Bob's" };
  expect(await issuer.renameBrand(renamed.id, renamed.name)).toEqual(renamed);
  const changed = await issuer.changeBrand(renamed.id, { colour: "#0A7F5A" });
  expect(changed).toEqual({ id: renamed.id, colour: "#0a7f5a", logo: null });
  const terms = { key: "club", name: "Club", type: "Service", retailPriceUsd: 20, priceUsd: 15 } as const;
  const product = await issuer.createProduct(String(brand?.id), terms);
  const asked = { issueRef: "spring", count: 3, validUntil: "2099-12-31", windows: { claim: {} } };
  const issued = await issuer.issueBatch(product.id, asked);
  expect(issued).toMatchObject({ count: 3, alreadyIssued: true });
  expect(lost).toBe(1);
  const vouchers = await readAll(issuer.vouchers(issued.id));
  expect(vouchers.map(({ serial }) => serial)).toEqual([1, 2, 3]);
  expect(await issuer.voidVoucher({ code: String(vouchers[0]?.code) })).toMatchObject({ alreadyVoided: false });
  expect(await issuer.voidBatch(issued.id)).toEqual({ voided: 2, alreadyFinal: 1 });
  expect(await issuer.batch(issued.id)).toMatchObject({ voided: 3, active: 0 });
  const { id } = await issuer.offerContract(String(brand?.id), { user: "bob" });
  expect(await issuer.acceptContract(id)).toEqual({ id, status: "Active" });
  const link = await issuer.createLink(id, product.id);
  expect(link).toEqual({ code: expect.stringMatching(/^\w+$/), url: `https://vouchers.test/r/${link.code}` });
  expect(await readAll(issuer.links({ contract: id }))).toMatchObject([{ ...link, productId: product.id }]);
  expect(await readAll(issuer.contracts({ user: "bob", status: "Active" }))).toMatchObject([{ id }]);
  const listing = await issuer.createListing(issued.id);
  expect(await readAll(issuer.listings({ batch: issued.id }))).toMatchObject([listing]);
  expect(await readAll(issuer.batches({ issueRef: "spring" }))).toMatchObject([{ id: issued.id }]);
  const code = String(vouchers[0]?.code);
  expect(await issuer.findVoucher(code)).toMatchObject({ code, batchId: issued.id, status: "Voided" });
  expect(await issuer.findVoucher("7Q4K-9MZX-2HTB-W8RC")).toBeNull();
});

it("client.voidBatch counts the vouchers of an attempt whose response got lost", async () => {
  const { batchId } = await issueTestBatch(db, partner, 3);
  let lost = 0;
  const issuer = await backOffice(async (input, init) => {
    const response = await fetch(input, init);
    if (!String(input).endsWith("/void") || lost++ > 0) return response;
    throw new TypeError("the answer is lost");
  });
  expect(await issuer.voidBatch(batchId)).toEqual({ voided: 3, alreadyFinal: 0 });
  expect(lost).toBe(2);
  expect(await issuer.voidBatch(batchId)).toEqual({ voided: 0, alreadyFinal: 3 });
});

it("client.voidBatch gives up while a voucher stays locked, and a later call voids the voucher", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 3);
  const issuer = await backOffice(fetch, 100);
  const [stuck] = vouchers.map(({ id }) => id);
  await whileLocked(db, [String(stuck)], async () => {
    await expect(issuer.voidBatch(batchId)).rejects.toMatchObject({
      name: "OutcomeUnknown",
      message: expect.stringMatching(/^1 vouchers of the batch/),
    });
  });
  expect(await issuer.batch(batchId)).toMatchObject({ active: 1, voided: 2 });
  expect(await issuer.voidBatch(batchId)).toEqual({ voided: 1, alreadyFinal: 2 });
});

it.each([
  ["continues as long as fewer vouchers remain", [9, 7, 4, 2, 1, 0], 6],
  ["gives up after a minute without progress", [9, 7, 7, 7, 8, 7, 7], 4],
])("client.voidBatch %s", async (_name, remaining, calls) => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const left = [...remaining];
  const slow: typeof fetch = async (input) => {
    if (!String(input).endsWith("/void")) return Response.json({ id: "b", count: 9, voided: left.length > 0 ? 0 : 9 });
    vi.advanceTimersByTime(45_000);
    return Response.json({ voided: 0, alreadyFinal: 0, remaining: left.shift() ?? 0 });
  };
  const voiding = voucherClient({ baseUrl: "https://vouchers.example", apiKey: "x", fetch: slow }).issuer.voidBatch(
    "b",
  );
  if (remaining.at(-1) === 0) expect(await voiding).toEqual({ voided: 9, alreadyFinal: 0 });
  else await expect(voiding).rejects.toThrow("7 vouchers of the batch b are not voided yet");
  expect(remaining.length - left.length).toBe(calls);
});

it("suspendVoucher and suspendBatch suspend vouchers, and the resume calls end the suspension", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 3);
  const issuer = await backOffice(fetch);
  const id = String(vouchers[0]?.id);
  expect(await issuer.suspendVoucher({ id, reason: "stolen" })).toEqual({ id, suspended: true });
  expect(await issuer.resumeVoucher({ id })).toEqual({ id, suspended: false });
  expect(await issuer.suspendBatch(batchId, "stolen")).toEqual({ suspended: 3 });
  await expect(issuer.resumeVoucher({ id })).rejects.toMatchObject({ code: "voucher_suspended" });
  expect(await issuer.batch(batchId)).toMatchObject({ active: 0, suspended: 3 });
  expect(await issuer.resumeBatch(batchId)).toEqual({ resumed: 3 });
});

it("extendVoucher and extendBatch extend vouchers, and count the vouchers that responses report", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 3);
  const issuer = await backOffice(fetch);
  const id = String(vouchers[0]?.id);
  const extended = await issuer.extendVoucher({ id, validUntil: "2099-12-31", reason: "she was ill" });
  expect(extended).toEqual({ id, validUntil: "2099-12-31T23:59:59.999Z", extended: true });
  expect(await issuer.extendBatch(batchId, "2099-12-31")).toEqual({ extended: 2 });
  expect(await issuer.extendBatch(batchId, "2099-12-31")).toEqual({ extended: 0 });
});

/** The calls for a key that may issue. */
async function backOffice(send: typeof fetch, patienceMs = 60_000) {
  const { key } = await makeKey(db, partner.organizationId, { scopes: ["voucher.issue"] });
  return voucherClient({ baseUrl: api.url, apiKey: key, fetch: send, patienceMs, timeoutMs: 60_000 }).issuer;
}

async function readAll<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
