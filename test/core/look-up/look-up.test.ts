import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { insertProduct } from "../../../src/core/catalog/db/catalog.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { partnerClient, type Reply, send } from "../../support/client.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { BASE_URL } from "../../support/service.ts";
import { issueVoucher, issueVouchers, provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { voidVoucher } from "../../support/void-voucher.ts";

// Reservations of the second API end after two seconds.
const service = useService({ apis: [{}, { RESERVATION_SECONDS: "2" }] });
const { api, servers, partner, stranger, foreign, rival: till, till: shop } = service;
const hasty = service.apis[1];

it("a look-up has exactly the documented fields and types", async () => {
  const validUntil = new Date(Date.now() + 86_400_000);
  const [, voucher] = await issueVouchers(servers.db, partner, 2, { validUntil });
  const { rows } = await servers.db.query("SELECT name FROM brands WHERE id = $1", [partner.brandId]);
  const { status, body, headers } = await shop.lookUp(voucher?.code ?? "");
  expect(status).toBe(200);
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(body).toStrictEqual({
    voucher: {
      id: voucher?.id,
      code: voucher?.code,
      serial: 2,
      brand: rows[0].name,
      productName: "Pass",
      productKey: "pass",
      type: "Subscription",
      retailPriceUsd: 50,
      priceUsd: 40.25,
      benefitMonths: 6,
      usageUnitLabel: "visit",
      validUntil: validUntil.toISOString(),
      status: "Active",
      redeemedAt: null,
    },
    reservation: null,
    verifyUrl: `${BASE_URL}/integrity/events/VoucherInstance/${voucher?.id}`,
  });
});

it("a look-up shows the product type and terms at the time of issue, even if the product has changed", async () => {
  for (const type of ["Subscription", "Product", "Service", "Discount"] as const) {
    const stated = { type, retailPriceUsd: 0.1, priceUsd: 0, benefitMonths: 0, usageUnitLabel: null };
    const product = { id: newId("prd"), key: `bare-${type}`, ...stated };
    await insertProduct(servers.db, { ...product, brandId: partner.brandId, name: "Bare" });
    const { code } = await issueVoucher(servers.db, { ...partner, productId: product.id });
    const later = "UPDATE products SET price_usd = 1, retail_price_usd = 2, benefit_months = 3 WHERE id = $1";
    await servers.db.query(later, [product.id]);
    expect((await shop.lookUp(code)).body.voucher).toMatchObject({
      ...stated,
      productName: "Bare",
      productKey: product.key,
    });
  }
});

it("a look-up finds a generated code in every spelling", async () => {
  for (const { id, code } of await issueVouchers(servers.db, partner, 20)) {
    const misread = code.toLowerCase().replaceAll("0", "o").replaceAll("1", "l");
    for (const spelt of [code, code.replaceAll("-", ""), ` ${code.replaceAll("-", " ")} `, misread]) {
      expect((await shop.lookUp(spelt)).body.voucher?.id, spelt).toBe(id);
    }
  }
});

it("a look-up finds imported codes of 4 to 64 visible characters", async () => {
  const visible = Array.from({ length: 0x7e - 0x21 + 1 }, (_, i) => String.fromCharCode(0x21 + i)).join("");
  const paths = ['a/b?c%d\\"e', "#hash#!", "+plus+and&amp;", "%41%42%43", "%2F%2e%2E", "null", "__proto__"];
  // An imported code of 16 symbols whose last one is a wrong check symbol.
  const generated = (await service.issue()).code;
  const misfit = generated.slice(0, -1) + (generated.endsWith("7") ? "8" : "7");
  for (const code of [...paths, misfit, visible.slice(0, 47), visible.slice(47), "Z9Z8", "Q".repeat(64)]) {
    const id = await issueImported(code);
    expect((await shop.lookUp(code)).body.voucher).toMatchObject({ id, code });
  }
});

it("a look-up finds a code with full stops that an older release imported", async () => {
  const id = await issueImported("MAY.2026/X");
  await service.db.query("UPDATE vouchers SET code_key = 'MAY.2026/X' WHERE id = $1", [id]);
  await service.db.query(readFileSync(new URL("../../../migrations/00020_code_keys.sql", import.meta.url), "utf8"));
  expect((await shop.lookUp("may.2026/x")).body.voucher.id).toBe(id);
});

it("a look-up finds the caller's own voucher if another organization imported the same code", async () => {
  const [theirs] = await issueVouchers(servers.db, stranger, 1, { codes: ["SHARED-CODE"] });
  const ours = await issueImported("SHARED-CODE");
  expect((await shop.lookUp("shared code")).body.voucher.id).toBe(ours);
  expect((await foreign.lookUp("shared code")).body.voucher.id).toBe(theirs?.id);
});

it("a look-up by a live or ended ticket gives the same response as a look-up by the code", async () => {
  const { id, code } = await service.issue();
  const same = async (ticket: string, client = shop) => {
    const { status, body } = await client.lookUp(ticket);
    expect(status).toBe(200);
    expect(body).toStrictEqual((await client.lookUp(code)).body);
    return body;
  };
  const first = (await shop.reserve(code)).body;
  expect(await same(first.ticket)).toMatchObject({
    voucher: { id, status: "Active" },
    reservation: { ticket: first.ticket },
  });
  await shop.release(first.ticket);
  expect(await same(first.ticket)).toMatchObject({ voucher: { id, status: "Active" }, reservation: null });
  const { ticket } = (await shop.reserve(code)).body;
  expect(await same(first.ticket)).toMatchObject({ reservation: { ticket, heldByCaller: true } });
  expect(JSON.stringify(await same(ticket, till))).not.toContain(ticket);
  const { redeemedAt } = (await shop.redeem({ ticket, externalRef: "consumed" })).body;
  expect(await same(ticket)).toMatchObject({ voucher: { id, status: "Redeemed", redeemedAt }, reservation: null });
});

it("a look-up shows Expired once validUntil has passed, although no row changes", async () => {
  // On a busy machine, the first answer may come after the voucher has expired. Then the test uses another voucher.
  const { validUntil, code, before, first } = await until(async () => {
    const validUntil = new Date(Date.now() + 2_500);
    const { code } = await service.issue({ validUntil });
    const before = await dumpRows(servers.db, ["batches", "vouchers", "voucher_events"]);
    const first = await shop.lookUp(code);
    return Date.now() < validUntil.getTime() ? { validUntil, code, before, first } : null;
  });
  expect(first.body.voucher.status).toBe("Active");
  const { body } = await until(async () => {
    const reply = await shop.lookUp(code);
    return reply.body.voucher.status === "Expired" ? reply : null;
  });
  expect(body.voucher).toMatchObject({ validUntil: validUntil.toISOString(), redeemedAt: null });
  expect(await dumpRows(servers.db, ["batches", "vouchers", "voucher_events"])).toEqual(before);
  const { rows } = await servers.db.query("SELECT date_trunc('milliseconds', clock_timestamp()) AS now");
  expect(rows[0].now.getTime()).toBeGreaterThanOrEqual(validUntil.getTime());
});

it("a look-up shows a reservation's ticket only to the key that reserved, and the token to no key", async () => {
  const { code } = await service.issue();
  const held = (await shop.reserve(code)).body;
  const { rows } = await servers.db.query("SELECT started_at FROM reservations WHERE ticket = $1", [held.ticket]);
  const shown = { startedAt: rows[0].started_at.toISOString(), expiresAt: held.expiresAt };
  const toHolder = await shop.lookUp(code);
  const toOther = await till.lookUp(code);
  expect(toHolder.body.reservation).toStrictEqual({ ...shown, ticket: held.ticket, heldByCaller: true });
  expect(toOther.body.reservation).toStrictEqual({ ...shown, ticket: null, heldByCaller: false });
  for (const { body } of [toHolder, toOther]) expect(JSON.stringify(body)).not.toContain(held.token);
});

it("a look-up shows no reservation after its end, even if the row's state is still Live", async () => {
  // On a busy machine, the first answer may come after the reservation's end. Then the test uses another one.
  const { code, ticket, first } = await until(async () => {
    const { code } = await service.issue();
    const { ticket, expiresAt } = (await partnerClient(hasty.url, service.keys.till.key).reserve(code)).body;
    const first = await shop.lookUp(code);
    return Date.now() < Date.parse(expiresAt) ? { code, ticket, first } : null;
  });
  expect(first.body.reservation).toMatchObject({ ticket });
  await until(async () => (await shop.lookUp(code)).body.reservation === null);
  expect((await shop.lookUp(ticket)).body).toMatchObject({ voucher: { status: "Active" }, reservation: null });
  const { rows } = await servers.db.query("SELECT state FROM reservations WHERE ticket = $1", [ticket]);
  expect(rows[0].state).toBe("Live");
});

/** Returns everything in an answer that a caller can see, except the request id and the time. */
function visible({ status, body, headers }: Reply) {
  const { requestId, ...rest } = body;
  expect(headers.get("x-request-id")).toBe(requestId);
  const shown = [...headers].filter(([name]) => name !== "x-request-id" && name !== "date");
  return { status, fields: Object.keys(body), rest, names: [...headers.keys()], shown };
}

it("a look-up answers unknown, malformed and other organizations' codes with identical bytes", async () => {
  const theirs = await issueVoucher(servers.db, stranger);
  const { ticket } = (await foreign.reserve(theirs.code)).body;
  const unknown = visible(await shop.lookUp("7Q4K-9MZX-2HTB-W8RC"));
  expect(unknown).toMatchObject({
    status: 404,
    fields: ["error", "code", "requestId"],
    rest: { code: "voucher_not_found" },
  });
  const others = [
    theirs.code,
    theirs.id,
    ticket,
    newId("rsv"),
    `rsv_${"x".repeat(300)}`,
    "abc",
    "x".repeat(65),
    "\0\0",
  ];
  for (const other of others) expect(visible(await shop.lookUp(other)), other).toEqual(unknown);
});

it("a look-up changes nothing in Postgres or Redis, for every status and for unknown codes", async () => {
  const [active, held, redeemed, voided, overdue] = await issueVouchers(servers.db, partner, 5);
  const expired = await service.issue({ validUntil: new Date(Date.now() - 1_000) });
  await shop.reserve(held?.code ?? "");
  await shop.redeem({ code: redeemed?.code, externalRef: "changes-nothing" });
  await voidVoucher(provisioning(servers.db), partner.organizationId, voided?.code ?? "", null);
  const { ticket } = (await partnerClient(hasty.url, service.keys.till.key).reserve(overdue?.code ?? "")).body;
  await until(async () => (await shop.lookUp(ticket)).body.reservation === null);
  // The overdue reservation's lease expires by itself. Only then do the keys in Redis stay the same.
  await until(async () => (await servers.redis.exists(servers.leaseKey(overdue?.id ?? ""))) === 0);

  // BullMQ's key for its last check for stalled jobs expires after five seconds, and BullMQ sets it again. Processes
  // create counts each minute, and store each organization's last calls.
  const isByTime = (key: string) => /:stalled-check$|:overview\}:(minute|hour|jobs):\d+$|:calls\}:/.test(key);
  const keys = async () => (await servers.redis.keys("*")).filter((key) => !isByTime(key)).sort();
  const before = { rows: await dumpRows(servers.db), keys: await keys() };
  for (const named of [active, held, redeemed, voided, overdue, expired]) {
    for (const client of [shop, till]) expect((await client.lookUp(named?.code ?? "")).status).toBe(200);
    expect((await foreign.lookUp(named?.code ?? "")).status).toBe(404);
  }
  expect((await shop.lookUp(ticket)).status).toBe(200);
  expect(
    (await send("HEAD", `${api.url}/partner/vouchers/${active?.code}`, { key: service.keys.till.key })).status,
  ).toBe(200);
  expect({ rows: await dumpRows(servers.db), keys: await keys() }).toEqual(before);
});

async function issueImported(code: string): Promise<string> {
  const [voucher] = await issueVouchers(servers.db, partner, 1, { codes: [code] });
  return voucher?.id ?? "";
}
