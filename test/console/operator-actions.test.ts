import pg from "pg";
import { expect, it, vi } from "vitest";
import { createKey } from "../../src/acts/key/create.ts";
import { revokeOperator } from "../../src/acts/operator/revoke.ts";
import { EXAMPLE } from "../../src/platform/api/example.ts";
import { basic, browse, type Form, OPS_TOKEN } from "../support/browse.ts";
import { partnerClient } from "../support/client.ts";
import { makeOffer, makeReferral } from "../support/marketplace.ts";
import { makeOperator } from "../support/operators.ts";
import { besideTransaction, exportWhileLocked, untilWaiting } from "../support/outside-transaction.ts";
import { issueTestBatch, issueVouchers, makeKey, makePartner, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";
import { startReceiver, WEBHOOK_ENV } from "../support/webhook-receiver.ts";

const { WEBHOOK_SECRET } = WEBHOOK_ENV;
const OPERATED = { OPS_TOKEN, WEBHOOK_SECRET, WEBHOOK_ALLOW_PRIVATE: "true", METRICS_PORT: "0" };
const PRODUCT = {
  name: "Day pass",
  key: "day",
  type: "Service",
  retailPriceUsd: "19.90",
  priceUsd: "15",
  benefitMonths: "0",
};
const BATCH = { validUntil: "2999-12-31T23:59", audience: "OpenToAll" };
const HOSTILE = `<script>alert("x")</script> ‮${"W".repeat(160)}`;

// Two APIs: one writable, one read-only, which is the default.
const service = useService({ apis: [{ OPS_WRITABLE: "true" }, {}], env: OPERATED });
const { api, db, servers } = service;

const idIn = (path: string) => path.split("/")[2] ?? "";

it("an operator can create all entities of a redeemed voucher in the console, each with an audit entry", async () => {
  expect((await open("/organizations")).text).toContain("New organization");
  const brandForm = await go("/organizations/new", { name: "Corner Shop", sandbox: "on" });
  expect(brandForm).toMatch(/^\/organizations\/org_\w+\/brands\/new$/);
  const productForm = await go(brandForm, { name: HOSTILE });
  expect((await open(productForm)).text).not.toContain("<script>");
  const batchForm = await go(productForm, PRODUCT);
  const batch = await go(batchForm, { ...BATCH, count: "30", windows: ["claim", "buy"] });
  const csv = await open(`${batch}/codes.csv`, {});
  expect(csv.headers.get("content-type")).toContain("text/csv");
  expect(csv.headers.get("content-length")).toBe(String(csv.text.length));
  const [head, ...lines] = csv.text.trim().split("\n");
  expect([head, lines.length]).toEqual(["id,code,serial", 30]);
  const [, code = ""] = lines[0]?.split(",") ?? [];
  const sheet = await open(`${batch}/print`, { from: "1", to: "30" });
  for (const line of lines) expect(sheet.text).toContain(line.split(",")[1]);
  expect(sheet.headers.get("content-length")).toBe(String(Buffer.byteLength(sheet.text)));
  const organizationId = idIn(brandForm);
  const shown = await open(`/organizations/${organizationId}/keys/new`, {
    label: "till 1",
    scopes: ["voucher.read", "voucher.redeem"],
    allowIps: "127.0.0.0/8 ::1",
  });
  const [key = ""] = /pvt_\w+/.exec(shown.text) ?? [];
  expect((await open(`/organizations/${organizationId}`)).text).not.toContain(key);
  const { status } = await partnerClient(api.url, key).redeem({ code, externalRef: "order-1" });
  expect(status).toBe(200);

  const by = { user: "shared: Zoë", host: "console" };
  const created = { ...by, created: true };
  expect(await entriesOf(organizationId)).toEqual([
    { ...created, command: "org create", arguments: { name: "Corner Shop", sandbox: true } },
  ]);
  expect(await entriesOf(idIn(productForm))).toMatchObject([
    { ...created, command: "brand create", arguments: { org: organizationId } },
  ]);
  expect(await entriesOf(idIn(batchForm))).toMatchObject([
    { ...created, command: "product create", arguments: { key: "day", priceUsd: 15 } },
  ]);
  expect(await entriesOf(idIn(batch))).toMatchObject([
    {
      ...created,
      command: "batch issue",
      arguments: { product: idIn(batchForm), count: 30, windows: ["claim", "buy"] },
    },
    { ...by, command: "batch export", arguments: { from: 1, to: 30 } },
    { ...by, command: "batch export", arguments: { from: 1, to: 30 } },
  ]);
  const { rows } = await db.query("SELECT id FROM api_keys WHERE organization_id = $1", [organizationId]);
  expect(await entriesOf(rows[0].id)).toMatchObject([
    { ...created, command: "key create", arguments: { label: "till 1", allowIps: ["127.0.0.0/8", "::1"] } },
  ]);
  await go(`${batch}/listings/new`, {});
  expect((await open(batch)).text).toContain("lst_");
  expect((await open(`${batch}/listings/new`, {})).text).toContain("is already listed");
});

it("a console form shows each error beside its field, keeps the input and changes nothing", async () => {
  const { brandId, productId, organizationId } = await makePartner(db);
  const entries = async () =>
    (await db.query("SELECT count(*)::int AS n FROM audit_entries WHERE command NOT LIKE 'page %'")).rows[0].n;
  const before = await entries();
  const product = { ...PRODUCT, key: "pass", retailPriceUsd: "1,50", priceUsd: "1.505", benefitMonths: "x" };
  const wrong = await open(`/brands/${brandId}/products/new`, product);
  expect(wrong.status).toBe(400);
  expect(wrong.text).toMatch(
    /f-priceUsd-problem" role="alert">Price of the voucher in US dollars must be dollars like 19.90\./,
  );
  expect(wrong.text).toContain("Months must be a whole number from 0 to 1200.");
  for (const value of ["1,50", "1.505", "x", "Day pass"]) expect(wrong.text).toContain(`value="${value}"`);
  expect(wrong.text).toMatch(/<option value="Service" selected>/);
  const taken = await open(`/brands/${brandId}/products/new`, { ...PRODUCT, key: "pass" });
  expect(taken.text).toMatch(/f-key-problem" role="alert">The brand already has a product with the key pass\./);
  const issue = (form: Form) => open(`/products/${productId}/batches/new`, { ...BATCH, count: "1", ...form });
  const cases: [Form, string][] = [
    [{ count: "0" }, "f-count-problem"],
    [{ count: "1e3" }, "f-count-problem"],
    [{ validUntil: "2027-02-30T00:00" }, "f-validUntil-problem"],
    [{ validUntil: "31.12.2027" }, "f-validUntil-problem"],
    [{ validUntil: "2027-12-31 18:00+02:00" }, "f-validUntil-problem"],
    [{ windows: "buy", closesAt: "12/31/2027" }, "f-closesAt-problem"],
    [{ windows: "buy", opensAt: "2027-01-03", closesAt: "2027-01-02" }, "f-closesAt-problem"],
    [{ validUntil: "2020-01-01T00:00" }, "f-validUntil-problem"],
    [{ audience: "Everyone" }, "f-audience-problem"],
    [{ windows: ["claim", "steal"] }, "f-windows-problem"],
    [{ opensAt: "2027-01-01T00:00" }, "f-windows-problem"],
    [{ windows: "buy", opensAt: "2999-12-31T23:59" }, "f-opensAt-problem"],
    [{ windows: "buy", opensAt: "2027-01-02T00:00", closesAt: "2027-01-02T00:00" }, "f-closesAt-problem"],
  ];
  for (const [form, problem] of cases) {
    const refused = await issue(form);
    expect([refused.status, refused.text.match(/id="(f-\w+-problem)"/g)], JSON.stringify(form)).toEqual([
      400,
      [`id="${problem}"`],
    ]);
  }
  const [opensAt, closesAt] = ["2999-01-03", "2999-01-02"];
  const mixed = await issue({ count: "0", validUntil: "2020-01-01", windows: "buy", opensAt, closesAt });
  expect(mixed.text.match(/f-\w+(?=-problem" role)/g)).toEqual(["f-count", "f-validUntil", "f-opensAt", "f-closesAt"]);
  const keyForm = `/organizations/${organizationId}/keys/new`;
  expect((await open(keyForm, { scopes: "voucher.read", allowIps: "10.0.0.0/33" })).text).toContain(
    "f-allowIps-problem",
  );
  const nowhere = await open(`/organizations/${organizationId}/change`, { timeZone: "Mars/Base" });
  expect(nowhere.text).toContain(">Time zone must be a time zone such as Europe/Berlin.<");
  const sent = { method: "POST", headers: basic(OPS_TOKEN), json: {} };
  expect((await browse(`${api.url}/ops${keyForm}`, sent)).status).toBe(400);
  expect((await open(keyForm, { label: "a\u0000b" })).text).toMatch(/f-label-problem[\s\S]*f-scopes-problem/);
  expect((await open(`/brands/${organizationId}/products/new`)).status).toBe(404);
  expect((await open("/brands/brd_none/products/new", product)).status).toBe(404);
  expect(await entries()).toBe(before);
});

it("the console renames a brand from the brand's page, and records the name before and after", async () => {
  const { brandId } = await makePartner(db);
  expect((await open(`/brands/${brandId}`)).text).toContain(`href="/ops/brands/${brandId}/rename"`);
  expect(await go(`/brands/${brandId}/rename`, { name: "New name" })).toBe(`/brands/${brandId}`);
  expect((await open(`/brands/${brandId}/rename`)).text).toContain('name="name" type="text" value="New name"');
  const { rows } = await db.query(
    `SELECT command, before->>'name' <> 'New name' AS differs, after->>'name' AS name
       FROM audit_entries WHERE entity_id = $1 AND after IS NOT NULL`,
    [brandId],
  );
  expect(rows).toEqual([{ command: "brand rename", differs: true, name: "New name" }]);
});

it("a console form shows the present values, and changes nothing if it is sent unchanged", async () => {
  const partner = await makePartner(db);
  const { organizationId, brandId } = partner;
  const { id: keyId } = await makeKey(db, organizationId, { caps: { maxPerDay: 7, maxAmountPerDayUsd: null } });
  const validUntil = new Date("2099-12-31T23:59:59.999Z");
  const { batchId, vouchers } = await issueTestBatch(db, partner, 1, { validUntil });
  const present: Record<string, Record<string, string>> = {
    [`/organizations/${organizationId}/change`]: { timeZone: "UTC" },
    [`/batches/${batchId}/extend`]: { validUntil: "2099-12-31" },
    [`/vouchers/${vouchers[0]?.id}/extend`]: { validUntil: "2099-12-31" },
  };
  for (const [path, values] of Object.entries(present)) {
    const { text } = await open(path);
    for (const [name, value] of Object.entries(values))
      expect(text, path).toContain(`name="${name}" type="text" value="${value}"`);
    const sent = text.includes("multipart") ? withFile(values, Buffer.alloc(0)) : values;
    expect((await open(path, sent)).status, path).toBeLessThan(400);
  }
  // A form that was opened before another operator's change must not undo it.
  const changed = await open(`/keys/${keyId}/change`);
  expect(changed.text).toMatch(/UTC\. Now: 7\.<[\s\S]*name="maxPerDay" type="text" value=""[\s\S]*UTC\. Now: none\.</);
  expect((await open(`/brands/${brandId}/change`)).text).toContain("own colour. Now: none.<");
  const none = { maxPerDay: "", maxAmountPerDayUsd: "" };
  expect((await open(`/keys/${keyId}/change`, none)).text).toContain(
    ">Most redemptions a day or Most value a day in US dollars is required.<",
  );
  for (const id of [organizationId, brandId, keyId, batchId, vouchers[0]?.id ?? ""])
    expect(
      (await entriesOf(id)).filter(({ command }) => /change|extend/.test(String(command))),
      id,
    ).toEqual([]);
});

it("the console sets a brand's logo and colour, and pages load both from cacheable addresses", async () => {
  const offer = await makeOffer(db, 1);
  const { rows } = await db.query("SELECT brand_id AS brand FROM products WHERE id = $1", [offer.productId]);
  const path = `/brands/${rows[0].brand}/change`;
  const { code } = await makeReferral(db, offer);
  const faceOf = async () => {
    const { text } = await browse(`${api.url}/r/${code}`);
    return [/<img class="logo" src="([^"]+)"/, /href="(\/colours[^"]+)"/].map((file) => file.exec(text)?.[1]);
  };
  expect(await faceOf()).toEqual([undefined, undefined]);
  expect((await open(path)).text).toMatch(
    /enctype="multipart\/form-data"[\s\S]*<input id="f-logo" name="logo" type="file"/,
  );
  const picture = Buffer.from(EXAMPLE.picture, "base64");
  expect(await go(path, withFile({ colour: "#0A7F5A" }, picture))).toBe(`/brands/${rows[0].brand}`);
  const face = await faceOf();
  expect(face).toEqual([`/logos/${EXAMPLE.logo}`, "/colours/0a7f5a.css"]);
  expect((await entriesOf(rows[0].brand)).at(-1)).toMatchObject({
    command: "brand change",
    arguments: { logo: EXAMPLE.logo, colour: "#0a7f5a" },
  });
  for (const [file, type] of [
    [face[0], "image/png"],
    [face[1], "text/css; charset=utf-8"],
  ]) {
    const { headers, status } = await browse(api.url + file);
    const names = ["content-type", "cache-control", "x-content-type-options"].map((name) => headers.get(name));
    expect([status, ...names]).toEqual([200, type, "public, max-age=31536000, immutable", "nosniff"]);
  }
  expect(Buffer.from(await (await fetch(api.url + face[0])).arrayBuffer())).toEqual(picture);
  const svg = Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>");
  for (const file of [svg, Buffer.concat([picture, Buffer.alloc(262_144)])]) {
    const refused = await open(path, withFile({ colour: "green" }, file));
    expect(refused.status).toBe(400);
    expect(refused.text).toContain(">Logo must be a PNG, JPEG or WebP file of at most 256 KiB.<");
    expect(refused.text).toContain(">Colour must be a colour such as #0a7f5a, or none.<");
  }
  expect(await faceOf()).toEqual(face);
  await go(path, withFile({ colour: "", removeLogo: "on" }, Buffer.alloc(0)));
  expect(await faceOf()).toEqual([undefined, face[1]]);
  expect((await browse(api.url + face[0])).status).toBe(404);
});

it("the console creates a second entity with the same name only after the operator's confirmation", async () => {
  const { organizationId } = await makePartner(db);
  const form = `/organizations/${organizationId}/brands/new`;
  await go(form, { name: "Twin" });
  const again = await open(form, { name: "twin" });
  expect(again.status).toBe(409);
  expect(again.text).toMatch(/There is already brd_\w+ with the name twin\.[\s\S]*name="namesake"/);
  await go(form, { name: "twin", namesake: "on" });
});

it("the console refuses forms from another site, and without OPS_WRITABLE shows and accepts no form", async () => {
  const { organizationId, brandId } = await makePartner(db);
  const form = `/organizations/${organizationId}/brands/new`;
  const send = async (headers: Record<string, string>) => (await open(form, { name: "x" }, { headers })).status;
  expect(await send({ "sec-fetch-site": "cross-site" })).toBe(403);
  expect(await send({ origin: "https://evil.test" })).toBe(403);
  expect(await send(basic("y"))).toBe(401);
  const at = service.apis[1].url;
  for (const path of [form, "/organizations/new", `/brands/${brandId}/products/new`]) {
    expect((await open(path, { name: "x" }, { at })).status, path).toBe(404);
    expect((await open(path, undefined, { at })).status, path).toBe(404);
  }
  expect((await open(`/organizations/${organizationId}`, undefined, { at })).text).not.toContain("brands/new");
  const { rows } = await db.query("SELECT FROM brands WHERE organization_id = $1", [organizationId]);
  expect(rows.length).toBe(1);
});

it("the console rotates and revokes a key", async () => {
  const { organizationId } = await makePartner(db);
  const { id, key } = await makeKey(db, organizationId);
  const status = async (secret: string) => (await partnerClient(api.url, secret).lookUp("0000-0000-0000-0000")).status;
  expect((await open(`/keys/${id}/rotate`)).text).toContain("How long the old secret still works (hours)");
  const rotated = await open(`/keys/${id}/rotate`, { graceHours: "0" });
  const [next = ""] = /pvk_\w+/.exec(rotated.text) ?? [];
  await until(async () => (await status(key)) === 401 && (await status(next)) === 404);
  expect(await go(`/keys/${id}/revoke`, {})).toBe(`/organizations/${organizationId}`);
  await until(async () => (await status(next)) === 401);
  expect((await entriesOf(id)).slice(1)).toMatchObject([
    { command: "key rotate", arguments: { id, graceHours: 0 }, user: "shared: Zoë" },
    { command: "key revoke", arguments: { id }, user: "shared: Zoë" },
  ]);
});

it("the console voids a voucher only if the operator types the voucher's code", async () => {
  const partner = await makePartner(db);
  const { key } = await makeKey(db, partner.organizationId);
  const [voucher, other] = await issueVouchers(db, partner, 2);
  if (voucher === undefined || other === undefined) throw new Error("no vouchers");
  await partnerClient(api.url, key).reserve(voucher.code);
  const path = `/vouchers/${voucher.id}/void`;
  expect((await open(path, { code: other.code })).text).toMatch(/f-code-problem" role="alert">[^<]* is another one/);
  expect(await go(path, { code: voucher.code.toLowerCase().replaceAll("-", " "), reason: "printed twice" })).toBe(
    `/vouchers/${voucher.id}`,
  );
  const { rows } = await db.query(
    `SELECT v.status, e.seal_status, r.state
       FROM vouchers AS v
       JOIN voucher_events AS e ON e.voucher_id = v.id AND e.sequence = 2
       JOIN reservations AS r ON r.voucher_id = v.id
      WHERE v.id = $1`,
    [voucher.id],
  );
  expect(rows).toEqual([{ status: "Voided", seal_status: "Sealed", state: "Released" }]);
  expect((await entriesOf(voucher.id)).map(({ arguments: args }) => args)).toEqual([
    { id: voucher.id, reason: "printed twice" },
  ]);
  expect((await open(path, { code: voucher.code })).status).toBe(409);
});

it("the console suspends and resumes vouchers and batches, and offers only possible actions", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, await makePartner(db), 2);
  const [id = ""] = vouchers.map((voucher) => voucher.id);
  const path = `/vouchers/${id}/suspend`;
  expect((await open(path, { reason: "" })).text).toMatch(/f-reason-problem" role="alert">/);
  expect(await go(path, { reason: "the letter was stolen" })).toBe(`/vouchers/${id}`);
  const page = (await open(`/vouchers/${id}`)).text;
  for (const shown of ["Suspended", "Put on hold", "Resume this voucher", "Void this voucher"])
    expect(page).toContain(shown);
  expect(page.match(/the letter was stolen/g)).toHaveLength(2);
  expect(page).not.toContain(vouchers[0]?.code);
  const whole = await open(`/batches/${batchId}/suspend`, { reason: "the parcel was stolen" });
  expect(whole.text).toContain("is suspended: 1 voucher. Redeemed, voided or suspended before: 1.");
  const batch = (await open(`/batches/${batchId}`)).text;
  expect(batch).toContain("Resume the batch");
  expect(batch).not.toContain("Suspend the batch");
  expect(batch).toMatch(/since <time[\s\S]*?<\/time>: the parcel was stolen</);
  const [own, other] = await Promise.all(vouchers.map(async (each) => (await open(`/vouchers/${each.id}`)).text));
  for (const held of [own, other]) {
    expect(held).toContain("with its batch: the parcel was stolen");
    expect(held).toContain(`/batches/${batchId}/resume">Resume the batch`);
    expect(held).not.toContain("Resume this voucher");
  }
  expect((await open(`/batches/${batchId}/resume`, {})).text).toContain("is resumed: 1 voucher.");
  expect((await open(`/vouchers/${id}`)).text).toContain("individually: the letter was stolen");
  // Resuming a batch does not resume a voucher that was suspended individually.
  expect((await open(`/batches/${batchId}`)).text).not.toContain("Resume the batch");
  expect(await go(`/vouchers/${id}/resume`, {})).toBe(`/vouchers/${id}`);
  expect((await open(`/vouchers/${id}`)).text).toContain("Suspend this voucher");
});

it("the console extends an expired voucher and its batch, and shows a wrong end beside its field", async () => {
  const validUntil = new Date(Date.now() - 1_000);
  const { batchId, vouchers } = await issueTestBatch(db, await makePartner(db), 2, { validUntil });
  const [id = ""] = vouchers.map((voucher) => voucher.id);
  expect((await open(`/vouchers/${id}`)).text).toContain("Extend this voucher");
  const expired = (await open(`/vouchers/${id}`)).text;
  expect(expired).toMatch(
    /Suspend this voucher<\/a> .*<span class="final"><a href="[^"]+\/erase">Erase personal data</,
  );
  const path = `/vouchers/${id}/extend`;
  expect((await open(path, { validUntil: "2020-01-01" })).text).toMatch(/f-validUntil-problem" role="alert">[^<]*past/);
  expect(await go(path, { validUntil: "2098-12-31", reason: "she was ill" })).toBe(`/vouchers/${id}`);
  expect((await open(path, { validUntil: "2097-12-31" })).text).toMatch(
    /f-validUntil-problem" role="alert">[^<]*must be later than 2098-12-31/,
  );
  const page = (await open(`/vouchers/${id}`)).text;
  expect(page).toContain("2098-12-31");
  expect(page).toContain("Extended");
  const whole = await open(`/batches/${batchId}/extend`, { validUntil: "2099-12-31" });
  expect(whole.text).toContain("2 vouchers extended.");
  expect((await entriesOf(id)).map(({ command }) => command)).toContain("voucher extend");
});

it("the console stops voiding a batch if the operator leaves the page, and can continue later", async () => {
  // One transaction waits for the locks of at most 100 vouchers, so a run over 101 needs two transactions.
  const { batchId } = await makeBatch(101);
  const count = async (status: string) =>
    (await db.query("SELECT FROM vouchers WHERE batch_id = $1 AND status = $2", [batchId, status])).rowCount;
  expect((await open(`/batches/${batchId}/void`, { product: "Other" })).text).toContain("f-product-problem");
  const locker = new pg.Client(servers.databaseUrl);
  await locker.connect();
  await locker.query("BEGIN");
  await locker.query("SELECT FROM vouchers WHERE batch_id = $1 FOR UPDATE", [batchId]);
  // The locks on the vouchers delay the run, so the response begins before a voucher is voided.
  const leaving = new AbortController();
  const body = new URLSearchParams({ product: "Pass" });
  const sent = { method: "POST", headers: basic(OPS_TOKEN), body, signal: leaving.signal };
  await fetch(`${api.url}/ops/batches/${batchId}/void`, sent);
  leaving.abort();
  await until(async () => /batches\/:id\/void.*499/.test(await (await fetch(api.metricsUrl)).text()));
  await locker.query("ROLLBACK");
  await locker.end();
  await until(async () => (await count("Voided")) !== 0);
  expect([await count("Voided"), await count("Active")]).toEqual([100, 1]);
  const again = await open(`/batches/${batchId}/void`, { product: "  Pass ", reason: "recalled" });
  expect(again.text).toContain("1 voucher voided. Redeemed, voided or expired before: 100.");
  expect((await entriesOf(batchId)).slice(1)).toMatchObject([
    { command: "batch void", user: "shared: Zoë" },
    { command: "batch void", arguments: { id: batchId, reason: "recalled" } },
  ]);
});

it("the console issues a batch of several thousand vouchers with progress on the page", async () => {
  const { productId } = await makePartner(db);
  const issued = await open(`/products/${productId}/batches/new`, { ...BATCH, count: "2001" });
  expect(issued.text).toMatch(/<p>1,000 of 2,001 vouchers<\/p>[\s\S]*<a href="\/ops\/batches\/bat_\w+">Continue/);
});

it("a printed label shows brand, product, price and last valid day, in the organization's time zone", async () => {
  const { organizationId, brandId, productId } = await makePartner(db);
  await db.query("UPDATE organizations SET time_zone = 'Europe/Berlin' WHERE id = $1", [organizationId]);
  await db.query("UPDATE brands SET name = 'Corner Shop' WHERE id = $1", [brandId]);
  const { rows } = await db.query("SELECT name FROM products WHERE id = $1", [productId]);
  for (const [validUntil, shown] of [
    ["2999-06-30", "30 June 2999"],
    ["2999-06-30 23:59", "30 June 2999"],
    ["2999-07-01 00:00", "30 June 2999"],
    ["2999-06-30 22:00", "30 June 2999"],
    ["2999-06-30 18:00", "30 June 2999, 20:00 CEST"],
  ] as const) {
    const batch = await go(`/products/${productId}/batches/new`, { ...BATCH, count: "1", validUntil });
    const { text } = await open(`${batch}/print`, {});
    const words = text
      .split('<div class="voucher">')[1]
      ?.replaceAll(/<svg[\s\S]*?<\/svg>|<[^>]+>/g, " ")
      .replaceAll(/\s+/g, " ");
    expect(words).toMatch(
      new RegExp(`^ ?${rows[0].name} , Corner Shop \\$\\d+\\.\\d\\d [-0-9A-Z]{19} Valid until ${shown} No\\. 1 `),
    );
  }
});

it("the print sheet has the first 24 serials or the chosen serials, and wrong serials get 400", async () => {
  const { vouchers, batchId } = await makeBatch(80);
  expect((await open(`/batches/${batchId}/print`)).text).toContain("Choose from 80 vouchers.");
  const first = await open(`/batches/${batchId}/print`, {});
  expect(first.text.match(/class="voucher"/g)?.length).toBe(24);
  expect(Buffer.byteLength(first.text)).toBeLessThan(75_000);
  const chosen = await open(`/batches/${batchId}/print`, { from: "79", to: "9999" });
  expect([chosen.text.includes(vouchers[78]?.code ?? "?"), chosen.text.includes(vouchers[77]?.code ?? "?")]).toEqual([
    true,
    false,
  ]);
  const wrong: Form[] = [{ from: "0" }, { from: "81" }, { from: "5", to: "4" }, { from: "x" }, { from: ["1", "2"] }];
  for (const form of wrong) {
    expect((await open(`/batches/${batchId}/print`, form)).status, JSON.stringify(form)).toBe(400);
  }
});

it("a print sheet without active vouchers says that there is nothing to print", async () => {
  const { batchId } = await makeBatch(2);
  await db.query("UPDATE vouchers SET status = 'Voided' WHERE batch_id = $1", [batchId]);
  const { text } = await open(`/batches/${batchId}/print`, {});
  expect(text).toContain("There is nothing to print: no voucher with serials 1 to 2 of 2 is active.");
  expect(text).not.toContain('class="sheet"');
});

it("the console sends a batch's codes only after a POST from its own site, and a GET shows a form", async () => {
  const { vouchers, batchId } = await makeBatch(3);
  const paths = ["print", "codes.csv"].map((name) => `/batches/${batchId}/${name}`);
  const answers = [await open(`${paths[0]}?from=1&to=3`), await open(`${paths[1]}`)];
  for (const path of paths) answers.push(await open(path, {}, { headers: { "sec-fetch-site": "cross-site" } }));
  expect(answers.map(({ status }) => status)).toEqual([200, 405, 403, 403]);
  expect(answers[1]?.headers.get("allow")).toBe("POST");
  for (const { text } of answers) expect(text).not.toContain(vouchers[0]?.code);
  expect(answers[0]?.text).toMatch(/<form class="act" method="post">[\s\S]*name="from"/);
  expect((await entriesOf(batchId)).filter(({ command }) => command === "batch export")).toEqual([]);
  const batch = await open(`/batches/${batchId}`);
  expect(batch.text).toContain(`<form action="/ops/batches/${batchId}/codes.csv" method="post">`);
  expect(batch.text).not.toContain(`href="/ops/batches/${batchId}/codes.csv"`);
});

it("the console sends no codes or print sheet if the operator is revoked during a lock wait", async () => {
  const { batchId } = await makeBatch(1);
  for (const what of ["codes.csv", "print"]) {
    const { id, headers } = await makeOperator(db, "operator");
    const file = () => open(`/batches/${batchId}/${what}`, {}, { headers });
    const refused = await exportWhileLocked(db, batchId, file, () => revokeOperator.run(provisioning(db), id, {}));
    expect([refused.status, refused.text.includes("This sign-in ended")], what).toEqual([401, true]);
  }
});

it("the console offers, accepts and ends a referrer contract, and creates a link with its QR code", async () => {
  const offer = await makeOffer(db, 1);
  const contract = await go(`/brands/${offer.brandId}/contracts/new`, { user: "bob & co" });
  expect((await open(`/brands/${offer.brandId}/contracts/new`, { user: "bob & co" })).text).toContain("f-user-problem");
  await go(`${contract}/accept`, {});
  await go(`${contract}/links/new`, { product: offer.productId });
  const page = await open(contract);
  const visit = async () => (await browse(`${api.url}/r/${code}`)).status;
  const [, code = ""] = /vouchers\.test\/r\/(\w+)"/.exec(page.text) ?? [];
  expect(await visit()).toBe(200);
  expect(page.text).toContain("<svg");
  await go(`${contract}/end`, {});
  expect(await visit()).toBe(404);
  expect((await open(`${contract}/accept`, {})).text).toContain("The contract is Ended and cannot become Active.");
  expect((await entriesOf(idIn(contract))).map(({ command }) => command)).toEqual([
    "contract offer",
    "contract accept",
    "contract end",
  ]);
});

it("the console tests, disables and enables a webhook endpoint, and sends its deliveries again", async () => {
  const { organizationId } = await makePartner(db);
  const receiver = await startReceiver(() => 503);
  servers.onClose(() => receiver.close());
  const id = await receiver.addEndpoint(db, organizationId);
  const tested = await open(`/webhooks/${id}/test`, {});
  expect(tested.text).toMatch(/Not accepted after \d+ ms: status 503\./);
  expect(receiver.of(id)).toMatchObject([{ type: "webhook.test", isSigned: true }]);
  await db.query(
    `INSERT INTO webhook_deliveries
       (position, created_at, finished_at, sequence, attempts, endpoint_id, event_id, voucher_id, event_type, state,
        last_failure)
     VALUES
       (1, '2026-01-02T00:00Z', now(), 2, 10, $1, 'vch_x-2', 'vch_x', 'voucher.instance.redeemed', 'Failed',
        'timeout')`,
    [id],
  );
  const replay = (to: string) => open(`/webhooks/${id}/replay`, { from: "2026-01-01T00:00", to });
  expect((await replay("2026-01-01T00:00")).text).toContain("f-to-problem");
  expect((await replay("2026-01-03T00:00")).text).toContain("1 delivery will be sent again within seconds.");
  await go(`/webhooks/${id}/disable`, {});
  expect((await open(`/webhooks/${id}/test`, {})).status).toBe(409);
  await go(`/webhooks/${id}/enable`, {});
  expect((await entriesOf(id)).map(({ command, user, host }) => [command, user, host])).toEqual(
    ["replay", "disable", "enable"].map((verb) => [`webhook ${verb}`, "shared: Zoë", "console"]),
  );
});

it("the console names the wrong setting and sends no codes if its role may not write audit entries", async () => {
  const at = (await service.startApi({ OPS_WRITABLE: "true", OPS_DATABASE_URL: servers.databaseUrl })).url;
  const refused = await open("/organizations/new", { name: "Refused" }, { at });
  expect([refused.status, refused.text.includes("OPS_DATABASE_URL")]).toEqual([503, true]);
  const { vouchers, batchId } = await makeBatch(1);
  for (const what of ["codes.csv", "print"]) {
    const codes = await open(`/batches/${batchId}/${what}`, {}, { at });
    expect([codes.status, codes.text.includes(String(vouchers[0]?.code))], what).toEqual([503, false]);
  }
});

// A closing process waits five seconds for a running batch. This is the smallest batch that needs two transactions.
it("the console finishes issuing a batch when its process begins to close", async () => {
  const { productId } = await makePartner(db);
  const closing = await service.startApi({ OPS_WRITABLE: "true" });
  const finished = await besideTransaction(db, async (outside) => {
    await outside.query("SELECT FROM products WHERE id = $1 FOR UPDATE", [productId]);
    const run = open(`/products/${productId}/batches/new`, { ...BATCH, count: "1001" }, { at: closing.url });
    await untilWaiting(db, 1);
    void closing.close();
    await outside.query("ROLLBACK");
    return run;
  });
  expect([finished.status, finished.text.includes("Done.")]).toEqual([200, true]);
  expect((await db.query("SELECT FROM batches WHERE product_id = $1", [productId])).rowCount).toBe(1);
});

it("a console form that issues a batch gets 503 and issues nothing if the process stops", async () => {
  const { productId } = await makePartner(db);
  const stopping = await service.startApi({ OPS_WRITABLE: "true" });
  Object.assign(stopping.ctx.console ?? {}, { signal: AbortSignal.abort() });
  const form = { ...BATCH, count: "2001" };
  const stopped = await open(`/products/${productId}/batches/new`, form, { at: stopping.url });
  expect([stopped.status, stopped.text.includes("The run was stopped")]).toEqual([503, true]);
  expect((await db.query("SELECT FROM batches WHERE product_id = $1", [productId])).rowCount).toBe(0);
});

it("a console form takes effect once: a repeat shows the first result, and a changed repeat is refused", async () => {
  const { organizationId, brandId, productId } = await makePartner(db);
  const offer = await makeOffer(db, 1);
  const { batchId } = await makeBatch(1);
  const contract = await go(`/brands/${offer.brandId}/contracts/new`, { user: "once" });
  await go(`${contract}/accept`, {});
  const created = async () =>
    (await db.query("SELECT FROM audit_entries WHERE before IS NULL AND after IS NOT NULL")).rowCount;
  for (const [path, fields, others] of [
    ["/organizations/new", { name: "Once" }, { name: "Twice" }],
    [`/organizations/${organizationId}/brands/new`, { name: "Once" }, { name: "Twice" }],
    [`/brands/${brandId}/products/new`, { ...PRODUCT, key: "once" }, { ...PRODUCT, key: "twice", name: "Twice" }],
    [`/products/${productId}/batches/new`, { ...BATCH, count: "2" }, { ...BATCH, count: "3" }],
    [`/batches/${batchId}/listings/new`, {}, null],
    [`/brands/${brandId}/contracts/new`, { user: "ann" }, { user: "joe" }],
    [`${contract}/links/new`, { product: offer.productId }, null],
  ] as const) {
    const formToken = crypto.randomUUID();
    const before = (await created()) ?? 0;
    const first = await go(path, { ...fields, formToken });
    expect(await go(path, { ...fields, formToken }), path).toBe(first);
    if (others !== null) {
      const refused = await open(path, { ...others, formToken });
      expect([refused.status, refused.text.includes("was sent before with other values")], path).toEqual([409, true]);
    }
    expect(await created(), path).toBe(before + 1);
    const fresh = /name="formToken" value="([\w-]{36})"/.exec((await open(path)).text)?.[1];
    expect(fresh, path).not.toBe(formToken);
    for (const wrong of ["", "x", [formToken, formToken]]) {
      expect((await open(path, { ...fields, formToken: wrong })).status, path).toBe(400);
    }
    expect(await created(), path).toBe(before + 1);
  }
});

it("a repeated console form for a new key shows no key, and names the key that the form created", async () => {
  const { organizationId } = await makePartner(db);
  const form = { formToken: crypto.randomUUID(), scopes: "voucher.read" };
  const path = `/organizations/${organizationId}/keys/new`;
  expect((await open(path, form)).text).toMatch(/pvk_\w+/);
  const again = await open(path, form);
  const { rows } = await db.query("SELECT id FROM api_keys WHERE organization_id = $1", [organizationId]);
  expect([again.status, rows.length, again.text.includes(rows[0].id)]).toEqual([200, 1, true]);
  expect(again.text).not.toMatch(/pv[kt]_/);
});

it("a double click whose requests reach two processes issues one batch, and both responses name it", async () => {
  const { productId } = await makePartner(db);
  const other = await service.startApi({ OPS_WRITABLE: "true" });
  const form = { ...BATCH, count: "2", formToken: crypto.randomUUID() };
  const path = `/products/${productId}/batches/new`;
  const answers = await besideTransaction(db, async (outside) => {
    // The lock delays the first transaction's audit entry, so all its other rows are written when the second begins.
    await outside.query("LOCK TABLE audit_entries IN ACCESS EXCLUSIVE MODE");
    const first = open(path, form);
    await untilWaiting(db, 1);
    const second = open(path, form, { at: other.url });
    await untilWaiting(db, 2);
    await outside.query("ROLLBACK");
    return Promise.all([first, second]);
  });
  expect(answers.map(({ status }) => status)).toEqual([303, 303]);
  const { rows } = await db.query("SELECT id FROM batches WHERE product_id = $1", [productId]);
  expect(rows).toHaveLength(1);
  for (const { location } of answers) expect(location).toBe(`/batches/${rows[0].id}`);
});

it("a console form takes effect when it is sent again after a failed first submission", async () => {
  const { productId } = await makePartner(db);
  const form = { ...BATCH, count: "2", formToken: crypto.randomUUID() };
  const path = `/products/${productId}/batches/new`;
  await db.query("ALTER TABLE audit_entries ADD CONSTRAINT refuse_issues CHECK (command <> 'batch issue') NOT VALID");
  expect((await open(path, form)).status).toBe(500);
  await db.query("ALTER TABLE audit_entries DROP CONSTRAINT refuse_issues");
  await go(path, form);
});

it("an end that an operator enters as a date means the end of that day in UTC", async () => {
  const { organizationId, brandId, productId } = await makePartner(db);
  const windows = { windows: "buy", opensAt: "2998-12-31", closesAt: "2998-12-31" };
  await go(`/products/${productId}/batches/new`, { ...BATCH, count: "1", validUntil: "2999-12-31", ...windows });
  await open(`/organizations/${organizationId}/keys/new`, { scopes: "voucher.read", expiresAt: "2999-12-31" });
  await go(`/brands/${brandId}/contracts/new`, { user: "ann", endsAt: "2999-12-31 18:00" });
  const { rows } = await db.query(
    `SELECT valid_until, opens_at, closes_at, k.expires_at, ends_at
       FROM batches b JOIN batch_windows w ON w.batch_id = b.id, api_keys k, referrer_contracts c
      WHERE b.product_id = $1 AND k.organization_id = $2 AND c.brand_id = $3 AND k.expires_at IS NOT NULL`,
    [productId, organizationId, brandId],
  );
  expect(rows.map((row) => Object.values(row).map((at) => (at as Date).toISOString()))).toEqual([
    [
      ...["2999-12-31T23:59:59.999Z", "2998-12-31T00:00:00.000Z", "2998-12-31T23:59:59.999Z"],
      ...["2999-12-31T23:59:59.999Z", "2999-12-31T18:00:00.000Z"],
    ],
  ]);
});

it("the console refuses an end time that is past by the database's clock", async () => {
  const { organizationId, brandId, productId } = await makePartner(db);
  const past = "2020-01-01T00:00";
  const batch = { ...BATCH, count: "1" };
  for (const [path, field, label, form] of [
    [`/products/${productId}/batches/new`, "validUntil", "Valid until", { ...batch, validUntil: past }],
    [`/products/${productId}/batches/new`, "closesAt", "Closes at", { ...batch, windows: "claim", closesAt: past }],
    [
      `/organizations/${organizationId}/keys/new`,
      "expiresAt",
      "Expires at",
      { scopes: "voucher.read", expiresAt: past },
    ],
    [`/brands/${brandId}/contracts/new`, "endsAt", "Ends at", { user: "late", endsAt: past }],
  ] as const) {
    const refused = await open(path, form);
    expect(refused.status, field).toBe(400);
    expect(refused.text).toContain(
      `<p class="problem" id="f-${field}-problem" role="alert">${label} is in the past: 2020-01-01T00:00:00.000Z.</p>`,
    );
  }
  // The host's clock is years behind and must have no effect.
  vi.useFakeTimers({ toFake: ["Date"], now: new Date("2019-01-01T00:00:00Z") });
  try {
    const key = {
      label: null,
      scopes: ["voucher.read" as const],
      allowIps: [],
      maxPerDay: null,
      maxAmountPerDayUsd: null,
      expiresAt: new Date("2020-01-01"),
    };
    await expect(createKey.run(provisioning(db), organizationId, key)).rejects.toThrow(
      "expiresAt is in the past: 2020-01-01T00:00:00.000Z.",
    );
  } finally {
    vi.useRealTimers();
  }
  const { rows } = await db.query("SELECT FROM api_keys WHERE organization_id = $1", [organizationId]);
  expect(rows).toHaveLength(0);
});

/** Opens a page of the console as a signed-in browser. With `fields`, sends a form, by default with a new token. */
async function open(path: string, fields?: Form | FormData, { at = api.url, headers = {} } = {}) {
  const form = fields instanceof FormData ? fields : fields && { formToken: crypto.randomUUID(), ...fields };
  const page = await browse(`${at}/ops${path}`, { form, headers: { ...basic(OPS_TOKEN), ...headers } });
  return { ...page, location: page.location.replace(/^\/ops/, "") };
}

/** Sends a form, which must lead to another page, and returns that page's path. */
async function go(path: string, form: Form | FormData): Promise<string> {
  const { status, location, text } = await open(path, form);
  expect(status, text).toBe(303);
  expect((await open(location)).status).toBe(200);
  return location;
}

/** Makes a form with a logo, as browsers send it: a file without content if none was chosen. */
function withFile(texts: Record<string, string>, file: Buffer): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(texts)) form.append(name, value);
  form.append("logo", new Blob([new Uint8Array(file)]), "logo.png");
  return form;
}

/** Makes a partner and a batch of its vouchers. */
async function makeBatch(count: number) {
  const partner = await makePartner(db);
  const vouchers = await issueVouchers(db, partner, count);
  const { rows } = await db.query("SELECT id FROM batches WHERE product_id = $1", [partner.productId]);
  return { partner, vouchers, batchId: rows[0].id as string };
}

/** Returns the audit entries of an entity, oldest first, without views of pages. */
async function entriesOf(entityId: string) {
  const { rows } = await db.query(
    `SELECT command, os_user AS "user", host, arguments, before IS NULL AS created FROM audit_entries
      WHERE entity_id = $1 AND command NOT LIKE 'page %' ORDER BY id`,
    [entityId],
  );
  return rows;
}
