import { beforeAll, expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { newId } from "../../src/core/voucher/ids.ts";
import { createListing } from "../../src/marketplace/acts.ts";
import { partnerClient, send, untilDecided } from "../support/client.ts";
import { makeContract, makeReferral } from "../support/marketplace.ts";
import { besideTransaction, bypassTriggers, lockIssueReference, untilWaiting } from "../support/outside-transaction.ts";
import { tablesWith } from "../support/row-dump.ts";
import { issueTestBatch, issueVoucher, makeKey, makePartner, provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { api, apis, db, partner, stranger, till, startApi } = useService({ apis: [{ ISSUER_API: "true" }, {}] });

let key: string;
let keyId: string;

beforeAll(async () => {
  ({ key, id: keyId } = await makeKey(db, partner.organizationId, { scopes: ["voucher.issue"] }));
});

const post = (path: string, body: object = {}, as = key) =>
  send("POST", `${api.url}/issuer/${path}`, { key: as, body });
const get = (path: string, as = key) => send("GET", `${api.url}/issuer/${path}`, { key: as });
const TERMS = { count: 3, validUntil: "2099-12-31" };
let orders = 0;
const newRef = () => `order-${++orders}`;
const issue = async (more: object = {}) =>
  (await post(`products/${partner.productId}/batches`, { ...TERMS, issueRef: newRef(), ...more })).body;
const auditOf = async (entityId: string) =>
  (
    await db.query(
      "SELECT os_user, by, command, arguments, after FROM audit_entries WHERE entity_id = $1 ORDER BY id",
      [entityId],
    )
  ).rows;

it("the issuer API issues one batch per reference, and a repeated request gets the first result", async () => {
  const asked = { ...TERMS, issueRef: " order-ä ", windows: { buy: { opensAt: "2099-01-01T00:00:00Z" } } };
  const path = `products/${partner.productId}/batches`;
  const first = await post(path, asked);
  expect(first.body).toEqual({
    id: expect.stringMatching(/^bat_/),
    count: 3,
    firstSerial: 1,
    lastSerial: 3,
    alreadyIssued: false,
  });
  const repeat = await post(path, { ...asked, issueRef: "order-a\u0308" });
  expect(repeat.body).toEqual({ ...first.body, alreadyIssued: true });
  const other = await post(path, { ...asked, count: 4 });
  expect(other.body).toEqual({ ...first.body, alreadyIssued: true, otherBatch: true });
  const { body } = await get(`batches/${first.body.id}`);
  expect(body).toMatchObject({
    issueRef: "order-ä",
    count: 3,
    active: 3,
    redeemed: 0,
    windows: { claim: null, buy: { opensAt: "2099-01-01T00:00:00.000Z", closesAt: null } },
  });
  expect(await auditOf(first.body.id)).toMatchObject([
    { os_user: keyId, by: "key", command: "batch issue", arguments: { product: partner.productId, count: 3 } },
  ]);
});

it("a request with an erased reference issues no second batch, and no table contains the reference", async () => {
  const issueRef = " Mrs. Smith's order ";
  const asked = { ...TERMS, issueRef };
  const path = `products/${partner.productId}/batches`;
  const first = await post(path, asked);
  const person = { by: "reference", organizationId: partner.organizationId, externalRef: issueRef } as const;
  const erase = () => erasePerson(provisioning(db), person, null);
  expect(await erase()).toEqual({ vouchers: 0, events: 0, references: 2 });
  expect(await erase()).toEqual({ vouchers: 0, events: 0, references: 0 });
  expect(await tablesWith(db, issueRef.trim())).toEqual([]);
  expect((await post(path, asked)).body).toEqual({ ...first.body, alreadyIssued: true });
  expect((await post(path, { ...asked, count: 4 })).body).toMatchObject({ id: first.body.id, otherBatch: true });
  expect((await get(`batches?issueRef=${encodeURIComponent(issueRef)}`)).body.items).toMatchObject([
    { id: first.body.id, issueRef: expect.stringMatching(/^erased:/) },
  ]);
});

it("no batch is issued if the request's reference is used and erased while the request waits", async () => {
  const issueRef = "Mr. Smith's order";
  const path = `products/${partner.productId}/batches`;
  const [first, waited] = await besideTransaction(db, async (outside) => {
    await lockIssueReference(outside, partner.organizationId, issueRef);
    const waiting = post(path, { ...TERMS, issueRef });
    await untilWaiting(db, 1);
    const { batchId } = await issueTestBatch(db, partner, 3);
    await outside.query(
      "INSERT INTO issue_references (organization_id, issue_ref, batch_id, terms) VALUES ($1, $2, $3, '{}')",
      [partner.organizationId, issueRef, batchId],
    );
    await outside.query("SELECT erase_reference($1, $2)", [partner.organizationId, issueRef]);
    await outside.query("COMMIT");
    return [batchId, await waiting];
  });
  expect(waited.body).toMatchObject({ id: first, alreadyIssued: true, otherBatch: true });
  expect(await tablesWith(db, issueRef)).toEqual([]);
});

it("simultaneous requests with one reference issue one batch", async () => {
  const asked = { ...TERMS, count: 2_000, issueRef: newRef() };
  // A call waits two seconds for another call. On a busy machine, it may get a 503, which the test repeats.
  const issueOnce = () => untilDecided(() => post(`products/${partner.productId}/batches`, asked));
  const answers = await Promise.all([issueOnce(), issueOnce(), issueOnce()]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  expect(answers.map(({ body }) => body.alreadyIssued).toSorted()).toEqual([false, true, true]);
});

it("a 400 of the issuer API names all fields with wrong shapes, past times and times out of order", async () => {
  const refuse = async (body: object) => (await post(`products/${partner.productId}/batches`, body)).body;
  const wrong = { count: 100_001, audience: "All", windows: { buy: { opensAt: "soon" } }, issueRef: "" };
  expect((await refuse(wrong)).error).toMatch(/^count .*validUntil .*audience .*windows\.buy\.opensAt .*issueRef /s);
  const windows = {
    buy: { opensAt: "2099-12-31", closesAt: "2099-12-01" },
    claim: { closesAt: "2020-01-01T00:00:00Z" },
  };
  const unordered = { count: 1, validUntil: "2021-01-01", windows, issueRef: newRef() };
  expect((await refuse(unordered)).error).toBe(
    "windows.buy.opensAt must be earlier than validUntil. " +
      "windows.buy.closesAt must be later than windows.buy.opensAt. " +
      "validUntil is in the past: 2021-01-01T23:59:59.999Z. " +
      "windows.claim.closesAt is in the past: 2020-01-01T00:00:00.000Z.",
  );
  const mixed = { ...unordered, count: 0, windows: { ...windows, buy: { ...windows.buy, opensAt: "soon" } } };
  expect((await refuse(mixed)).error).toMatch(
    /^count .*windows\.buy\.opensAt must be a date.*validUntil is in the past.*windows\.claim\.closesAt is in the past/,
  );
});

it("an issuer's program reads codes by page or as a CSV file, with one audit entry an hour for each key", async () => {
  const { id } = await issue();
  const first = await get(`batches/${id}/vouchers?limit=2`);
  const second = await get(`batches/${id}/vouchers?limit=2&cursor=${first.body.nextCursor}`);
  const items = [...first.body.items, ...second.body.items];
  expect(items.map(({ serial }) => serial)).toEqual([1, 2, 3]);
  expect(second.body.nextCursor).toBeNull();
  const headers = { "x-api-key": key, accept: "text/csv" };
  const csv = await fetch(`${api.url}/issuer/batches/${id}/vouchers`, { headers });
  expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  const lines = items.map(({ id: voucherId, code, serial }) => `${voucherId},${code},${serial}\n`);
  expect(await csv.text()).toBe(`id,code,serial\n${lines.join("")}`);
  const read = (await auditOf(id)).filter(({ command }) => command === "batch export");
  expect(
    read.map(({ os_user, arguments: given, after }) => [os_user, given, after.codesExported, after.readings]),
  ).toEqual([[keyId, { id }, 6, 3]]);
  const another = await makeKey(db, partner.organizationId, { scopes: ["voucher.issue"] });
  const pages = [key, key, another.key].map((by) =>
    send("GET", `${api.url}/issuer/batches/${id}/vouchers?limit=1`, { headers: { "x-api-key": by } }),
  );
  for (const { status } of await Promise.all(pages)) expect(status).toBe(200);
  // Moves the existing audit entries an hour back, as if an hour had passed.
  await bypassTriggers(db, "UPDATE audit_entries SET at = at - interval '1 hour' WHERE entity_id = $1", [id]);
  expect((await get(`batches/${id}/vouchers?limit=1`)).status).toBe(200);
  const all = (await auditOf(id)).filter(({ command }) => command === "batch export");
  expect(all.map(({ os_user, after }) => [os_user, after.codesExported])).toEqual([
    [keyId, 8],
    [another.id, 1],
    [keyId, 1],
  ]);
});

it("the issuer API's lists contain only the organization's own entities, by page", async () => {
  const { body: brands } = await get("brands");
  expect(brands).toMatchObject({ items: [{ id: partner.brandId }], nextCursor: null });
  expect((await get(`products?brand=${partner.brandId}`)).body.items).toMatchObject([{ id: partner.productId }]);
  const [first, second] = [await issue({ issueRef: "listed" }), await issue({ issueRef: "listed too" })];
  const byOperator = await issueTestBatch(db, partner, 1);
  const found: [id: string, issueRef: string | null][] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { body } = await get(`batches?product=${partner.productId}&limit=1${cursor && `&cursor=${cursor}`}`);
    found.push(...body.items.map(({ id, issueRef }: { id: string; issueRef: string }) => [id, issueRef]));
    cursor = body.nextCursor;
  }
  expect(found.slice(-3)).toEqual([
    [first.id, "listed"],
    [second.id, "listed too"],
    [byOperator.batchId, null],
  ]);
  const { body: listing } = await post(`batches/${first.id}/listings`);
  const { body: contract } = await post(`brands/${partner.brandId}/contracts`, { user: "listed" });
  const { body: link } = await post(`contracts/${contract.id}/links`, { product: partner.productId });
  expect(link).toEqual({ code: expect.stringMatching(/^[0-9a-z]{12}$/), url: `https://vouchers.test/r/${link.code}` });
  const foreign = await makePartner(db);
  await makeReferral(db, foreign);
  await createListing.run(provisioning(db), (await issueTestBatch(db, foreign, 1)).batchId, {});
  const listed = async (path: string) => (await get(path)).body.items;
  for (const filters of [`batch=${first.id}`, `product=${partner.productId}`, ""])
    expect(await listed(`listings?${filters}`)).toMatchObject([{ ...listing, batchId: first.id }]);
  for (const filters of ["user=listed", "status=Offered&user=listed", `brand=${partner.brandId}&user=listed`])
    expect(await listed(`contracts?${filters}`)).toMatchObject([{ ...contract, userId: "listed", status: "Offered" }]);
  for (const filters of [`contract=${contract.id}`, "user=listed", `product=${partner.productId}`, ""])
    expect(await listed(`links?${filters}`)).toMatchObject([{ ...link, contractId: contract.id, userId: "listed" }]);
  expect(await listed("batches?issueRef=listed%20")).toMatchObject([{ id: first.id, issueRef: "listed" }]);
  expect(await listed("batches?issueRef=unlisted")).toEqual([]);
  for (const path of ["batches?issueRef=%00", "contracts?user=%00", "contracts?status=Open", "links?cursor=%00"])
    expect((await get(path)).status, path).toBe(400);
});

it("the issuer API finds a voucher by its code in any spelling, but no other organization's voucher", async () => {
  const { id, code } = await issueVoucher(db, partner);
  await till.redeem({ code, externalRef: newRef() });
  const { body } = await get(`vouchers?code=${code.toLowerCase().replaceAll("-", "")}`);
  expect(body).toMatchObject({ items: [{ id, code, status: "Redeemed" }], nextCursor: null });
  expect(body.items[0].redeemedAt).toMatch(/Z$/);
  expect(Object.keys(body.items[0])).not.toContain("externalRef");
  const foreign = await issueVoucher(db, stranger);
  for (const other of [foreign.code, "7Q4K-9MZX-2HTB-W8RC", "%00", "?"])
    expect((await get(`vouchers?code=${other}`)).body).toEqual({ items: [], nextCursor: null });
  expect((await get("vouchers")).body.error).toBe("code is required.");
});

it("the issuer API's refusals are in the language of Accept-Language", async () => {
  const refuse = async (path: string, body: object) => {
    await post(path, body);
    const headers = { "accept-language": "de" };
    return (await send("POST", `${api.url}/issuer/${path}`, { key, body, headers })).body.error;
  };
  const product = { name: "Pass", key: "taken", type: "Service", retailPriceUsd: 1, priceUsd: 1 };
  const sentence = "Die Marke hat schon ein Produkt mit dem Schlüssel taken.";
  expect(await refuse(`brands/${partner.brandId}/products`, product)).toBe(sentence);
  const { body: contract } = await post(`brands/${partner.brandId}/contracts`, { user: "bob" });
  const moved = "Der Vertrag ist Declined und kann nicht Declined werden.";
  expect(await refuse(`contracts/${contract.id}/decline`, {})).toBe(moved);
  expect(await refuse(`contracts/${contract.id.replace("ctr", "brd")}/end`, {})).toMatch(/^Ihre Organisation hat/);
});

it("the issuer API voids a voucher by its code or id, and a repeated request succeeds", async () => {
  const { id, code } = await issueVoucher(db, partner);
  const voided = { id, voided: true };
  expect((await post("vouchers/void", { code, reason: "returned" })).body).toEqual({ ...voided, alreadyVoided: false });
  expect((await post("vouchers/void", { id })).body).toEqual({ ...voided, alreadyVoided: true });
  const [entry] = await auditOf(id);
  expect(entry).toMatchObject({ os_user: keyId, by: "key", command: "voucher void", arguments: { id } });
  expect(JSON.stringify(entry)).not.toContain(code);
  const used = await issueVoucher(db, partner);
  await till.redeem({ code: used.code, externalRef: newRef() });
  expect(await post("vouchers/void", { code: used.code })).toMatchObject({
    status: 409,
    body: { code: "voucher_used" },
  });
  expect((await post("vouchers/void", {})).body.error).toBe("code or id is required.");
  expect((await post("vouchers/void", { id, code })).body.error).toBe("code and id must not be given together.");
});

it("the issuer API suspends and resumes a voucher by its code or id, and a batch over several calls", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 2);
  const { id = "", code = "" } = vouchers[0] ?? {};
  const reason = "stolen";
  expect((await post("vouchers/suspend", { code, reason })).body).toEqual({ id, suspended: true });
  expect((await post("vouchers/suspend", { id })).body.error).toBe("reason is required.");
  for (const blank of [" ", "\u00a0\u200b\u3000"])
    expect((await post("vouchers/suspend", { id, reason: blank })).body.error).toBe("reason must not be empty.");
  const suspension = async () => (await get(`vouchers?code=${code}`)).body.items[0].suspension;
  expect(await suspension()).toEqual({ by: "voucher", reason });
  expect((await post("vouchers/resume", { id })).body).toEqual({ id, suspended: false });
  expect(await suspension()).toBeNull();
  const whole = await post(`batches/${batchId}/suspend`, { reason: "lost" });
  expect(await suspension()).toEqual({ by: "batch", reason: "lost" });
  expect((await get(`batches/${batchId}`)).body.suspensionReason).toBe("lost");
  expect(whole.body).toEqual({ suspended: 2, alreadyFinal: 0, remaining: 0 });
  expect(await post("vouchers/resume", { code })).toMatchObject({ status: 409, body: { code: "voucher_suspended" } });
  const freed = await post(`batches/${batchId}/resume`, {});
  expect(freed.body).toEqual({ resumed: 2, alreadyFinal: 0, remaining: 0 });
  const [entry] = await auditOf(id);
  expect(entry).toMatchObject({ by: "key", command: "voucher suspend", arguments: { reason } });
});

it("the issuer API extends a voucher by its code or id, and a batch over several calls", async () => {
  const { id, code } = await issueVoucher(db, partner);
  const body = { validUntil: "2099-12-31", reason: "she was ill" };
  const extended = { id, validUntil: "2099-12-31T23:59:59.999Z", extended: true };
  expect((await post("vouchers/extend", { code, ...body })).body).toEqual(extended);
  expect((await post("vouchers/extend", { id, ...body })).body).toEqual(extended);
  const [entry] = await auditOf(id);
  expect(entry).toMatchObject({ os_user: keyId, by: "key", command: "voucher extend", arguments: { id } });
  const earlier = await post("vouchers/extend", { id, validUntil: "2098-12-31" });
  const name = extended.validUntil;
  expect(earlier).toMatchObject({ status: 400, body: { error: `validUntil must be later than ${name}.` } });
  expect((await post("vouchers/extend", { id })).body.error).toBe("validUntil is required.");
  expect((await post("vouchers/extend", body)).body.error).toBe("code or id is required.");
  const { batchId } = await issueTestBatch(db, partner, 2);
  const whole = await post(`batches/${batchId}/extend`, body);
  expect(whole.body).toEqual({ extended: 2, alreadyFinal: 0, remaining: 0 });
  const again = await post(`batches/${batchId}/extend`, body);
  expect(again.body).toEqual({ extended: 0, alreadyFinal: 2, remaining: 0 });
});

it("the issuer API voids a batch over several calls, and counts already final vouchers separately", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 3);
  await till.redeem({ code: vouchers[0]?.code, externalRef: newRef() });
  expect((await post(`batches/${batchId}/void`)).body).toEqual({ voided: 2, alreadyFinal: 1, remaining: 0 });
  expect((await post(`batches/${batchId}/void`)).body).toEqual({ voided: 0, alreadyFinal: 3, remaining: 0 });
});

it("a key with the scope voucher.issue cannot redeem, and other keys cannot issue", async () => {
  const { code } = await issueVoucher(db, partner);
  const issuer = partnerClient(api.url, key);
  const refused = { status: 401, body: { code: "missing_scope" } };
  expect(await issuer.lookUp(code)).toMatchObject(refused);
  expect(await issuer.redeem({ code, externalRef: newRef() })).toMatchObject(refused);
  const reader = await makeKey(db, partner.organizationId, { scopes: ["voucher.read", "voucher.redeem"] });
  expect(await get("brands", reader.key)).toMatchObject(refused);
});

it("the issuer API answers another organization's entity with the same bytes as an unknown one", async () => {
  const { key: foreign } = await makeKey(db, stranger.organizationId, { scopes: ["voucher.issue"] });
  const { batchId, vouchers } = await issueTestBatch(db, partner, 1);
  const [voucher] = vouchers;
  const contractId = await makeContract(db, partner.brandId, "bob", "Offered");
  const calls: [known: string, unknown: string, body?: object][] = [
    [`products/${partner.productId}/batches`, `products/${newId("prd")}/batches`, { ...TERMS, issueRef: newRef() }],
    [`batches/${batchId}`, `batches/${newId("bat")}`],
    [`batches/${batchId}/vouchers`, `batches/${partner.productId}/vouchers`],
    [`batches?product=${partner.productId}`, `batches?product=${newId("prd")}`],
    [`products?brand=${partner.brandId}`, "products?brand=%00"],
    [`listings?batch=${batchId}`, `listings?batch=${newId("bat")}`],
    [`links?contract=${contractId}`, "links?contract=%00"],
    [`batches/${batchId}/void`, "batches/%00/void", {}],
    [`batches/${batchId}/extend`, "batches/%00/extend", { validUntil: "2099-12-31" }],
    [`batches/${batchId}/suspend`, "batches/%00/suspend", { reason: "stolen" }],
    [`batches/${batchId}/listings`, `batches/${newId("bat")}/listings`, {}],
    [`brands/${partner.brandId}/contracts`, `brands/${newId("brd")}/contracts`, { user: "bob" }],
    ...["accept", "decline", "end"].map((move): [string, string, object] => [
      `contracts/${contractId}/${move}`,
      `contracts/${newId("ctr")}/${move}`,
      {},
    ]),
    [`contracts/${contractId}/links`, `contracts/${newId("ctr")}/links`, { product: partner.productId }],
  ];
  // Requests a path. Returns the answer's bytes without names from the caller and without the request id.
  const bytes = async (path: string, body?: object, accept = "application/json") => {
    const init = body && { method: "POST", body: JSON.stringify(body) };
    const headers = { "x-api-key": foreign, "content-type": "application/json", "x-request-id": "same", accept };
    const answer = await fetch(`${api.url}/issuer/${path}`, { ...init, headers });
    const given = [...path.split(/[/?=]/), ...Object.values(body ?? {})]
      .map(String)
      .filter((text) => text.includes("_"));
    const text = given.reduce((left, name) => left.replaceAll(name, "NAME"), await answer.text());
    return { status: answer.status, type: answer.headers.get("content-type"), text };
  };
  for (const [known, unknown, body] of calls) {
    const answer = await bytes(known, body);
    expect(answer, known).toMatchObject({ status: 404, text: expect.stringContaining('"code":"not_found"') });
    expect(answer, known).toEqual(await bytes(unknown, body));
  }
  const csv = (id: string) => bytes(`batches/${id}/vouchers`, undefined, "text/csv");
  expect(await csv(batchId)).toMatchObject({ status: 404 });
  expect(await csv(batchId)).toEqual(await csv(newId("bat")));
  for (const [own, other] of [
    [{ code: voucher?.code }, { code: "7Q4K-9MZX-2HTB-W8RC" }],
    [{ code: voucher?.code }, { code: "?" }],
    [{ id: voucher?.id }, { id: newId("vch") }],
  ]) {
    const answer = await bytes("vouchers/void", own);
    expect(answer).toMatchObject({ status: 404, text: expect.stringContaining('"code":"not_found"') });
    expect(answer).toEqual(await bytes("vouchers/void", other));
  }
  expect((await get(`batches/${batchId}`)).body).toMatchObject({ active: 1 });
});

it("the issuer's routes do not exist without ISSUER_API, or in production without OPS_DATABASE_URL", async () => {
  const unsafe = { ISSUER_API: "true", NODE_ENV: "production", OPS_DATABASE_URL: "", OPS_TOKEN: "off" };
  const { url } = await startApi(unsafe);
  for (const off of [apis[1].url, url]) {
    const { body, status } = await send("GET", `${off}/issuer/brands`, { key });
    expect({ status, code: body.code }).toEqual({ status: 404, code: "not_found" });
  }
});
