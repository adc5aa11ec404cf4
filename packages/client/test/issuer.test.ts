import { expect, it } from "vitest";
import { makeKey } from "../../../test/support/supply.ts";
import { useService } from "../../../test/support/use-service.ts";
import { voucherClient } from "../src/index.ts";

const { api, db, partner } = useService({ workers: [], env: { ISSUER_API: "true" } });

it("the client issues once although answers get lost, reads codes, voids a batch and makes a link", async () => {
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
  expect((await issuer.createLink(id, product.id)).code).toMatch(/^\w+$/);
});

async function readAll<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
