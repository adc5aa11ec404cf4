import { beforeAll, expect, it } from "vitest";
import type { OperatorRole } from "../../src/acts/operator-role.ts";
import { browse, OPS_TOKEN } from "../support/browse.ts";
import { partnerClient } from "../support/client.ts";
import { makeOperators, type TestOperator } from "../support/operators.ts";
import { tablesWith } from "../support/row-dump.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { api, db, partner, till, issue } = useService({ apis: [{ OPS_TOKEN, OPS_WRITABLE: "true" }] });
let operators: Record<OperatorRole, TestOperator>;

beforeAll(async () => {
  operators = await makeOperators(db);
});

const pageOf = (organizationId: string) => `${api.url}/ops/organizations/${organizationId}`;

function send(role: OperatorRole, fields: Record<string, string>, organizationId = partner.organizationId) {
  const form = { formToken: crypto.randomUUID(), reason: "asked by the customer", ...fields };
  return browse(`${pageOf(organizationId)}/erase`, { form, headers: operators[role].headers });
}

/** Opens the page that shows the data held about a person. */
const show = (role: OperatorRole, path: string, form: Record<string, string> = {}) =>
  browse(`${api.url}/ops/${path}/show`, { form, headers: operators[role].headers });

async function redeem(externalRef: string) {
  const { id, code } = await issue();
  expect(await till.redeem({ code, externalRef })).toMatchObject({ status: 200 });
  return id;
}

it("only an admin sees and may send the form that erases by an organization's reference", async () => {
  await redeem("Mrs. Olive");
  const offersIt = async (role: OperatorRole) => {
    const { text } = await browse(pageOf(partner.organizationId), { headers: operators[role].headers });
    return text.includes(`/ops/organizations/${partner.organizationId}/erase"`);
  };
  expect([await offersIt("viewer"), await offersIt("operator"), await offersIt("admin")]).toEqual([false, false, true]);
  const form = await browse(`${pageOf(partner.organizationId)}/erase`, { headers: operators.admin.headers });
  expect([...form.text.matchAll(/<(?:input|select) id="f-(\w+)"/g)].at(-1)?.[1]).toBe("confirmation");
  expect(form.text).toContain('<button type="submit" class="final">');
  for (const role of ["viewer", "operator"] as const) {
    expect((await send(role, { ref: "Mrs. Olive", confirmation: "Mrs. Olive" })).status).toBe(403);
  }
  expect(await tablesWith(db, "Mrs. Olive")).toEqual(["redemptions", "voucher_events"]);
});

it("the form that erases by an organization's reference erases nothing else, and stores no reference", async () => {
  const other = await makePartner(db);
  const [foreign] = await issueVouchers(db, other, 1);
  const { key } = await makeKey(db, other.organizationId);
  const redeemed = await partnerClient(api.url, key).redeem({ code: foreign?.code ?? "", externalRef: "Mrs. Teal" });
  expect(redeemed.status).toBe(200);
  const id = await redeem("Mrs. Teal");
  const { status, text } = await send("admin", { ref: "Mrs. Teal", confirmation: "Mrs. Teal" });
  expect({ status, said: text.includes("Erased 1 event of 1 voucher, and 1 other text.") }).toEqual({
    status: 200,
    said: true,
  });
  const { rows } = await db.query(
    `SELECT e.voucher_id, e.erased_by IS NOT NULL AS erased FROM voucher_events AS e
      WHERE e.event_type = 'voucher.instance.redeemed' AND e.voucher_id = ANY ($1)`,
    [[id, foreign?.id]],
  );
  expect(Object.fromEntries(rows.map(({ voucher_id, erased }) => [voucher_id, erased]))).toEqual({
    [id]: true,
    [String(foreign?.id)]: false,
  });
  const { rows: entries } = await db.query(
    `SELECT os_user, by, entity_type, entity_id, arguments FROM audit_entries WHERE command = 'person erase'`,
  );
  expect(entries).toEqual([
    {
      os_user: operators.admin.name,
      by: "operator",
      entity_type: "Organization",
      entity_id: partner.organizationId,
      arguments: { by: "reference", reason: "asked by the customer" },
    },
  ]);
  expect(await tablesWith(db, "Mrs. Teal")).toEqual(["redemptions", "voucher_events"]);
  await send("admin", { ref: "Mrs. Teal", confirmation: "Mrs. Teal" }, other.organizationId);
  expect(await tablesWith(db, "Mrs. Teal")).toEqual([]);
});

it.each([
  ["no reference", { ref: "", confirmation: "Ms. Gold" }, "ref"],
  ["another confirmation", { ref: "Ms. Gold", confirmation: "Ms. Golds" }, "confirmation"],
  ["no confirmation", { ref: "Ms. Gold", confirmation: "" }, "confirmation"],
  ["the organization as the confirmation", { ref: "Ms. Gold", confirmation: "{organization}" }, "confirmation"],
])("a form for an erasure with %s erases nothing, and marks the field", async (_, fields, blamed) => {
  const redeemed = await db.query("SELECT FROM redemptions WHERE external_ref = 'Ms. Gold'");
  if (redeemed.rows.length === 0) await redeem("Ms. Gold");
  const confirmation = fields.confirmation.replace("{organization}", partner.organizationId);
  const { status, text } = await send("admin", { ...fields, confirmation });
  expect(status).toBe(400);
  expect(text).toMatch(new RegExp(`f-${blamed}-problem" role="alert">`));
  expect(await tablesWith(db, "Ms. Gold")).toEqual(["redemptions", "voucher_events"]);
});

it("the form that erases by an organization's reference ignores a submitted organization or user", async () => {
  await redeem("Mr. Rust");
  const { organizationId: org } = await makePartner(db);
  const fields = { ref: "Mr. Rust", confirmation: "Mr. Rust", org: partner.organizationId, user: "Mr. Rust" };
  expect((await send("admin", fields, org)).text).toContain("Nothing was found to erase");
  expect(await tablesWith(db, "Mr. Rust")).toEqual(["redemptions", "voucher_events"]);
  expect((await send("admin", fields, "org_unknown")).status).toBe(404);
});

it("only an admin sees the personal data of a voucher or order, and each view adds an audit entry", async () => {
  const id = await redeem("Mr. <Pine>");
  const [voucher, organization] = [`vouchers/${id}`, `organizations/${partner.organizationId}`];
  const form = await browse(`${api.url}/ops/${voucher}`, { headers: operators.admin.headers });
  expect(form.text).toContain(`/ops/${voucher}/show"`);
  for (const role of ["viewer", "operator"] as const) expect((await show(role, voucher)).status).toBe(403);
  for (const shown of [await show("admin", voucher), await show("admin", organization, { ref: "Mr. <Pine>" })]) {
    expect(shown.status).toBe(200);
    expect(shown.text).toMatch(/Held about [^<]+: 1 event and 1 other text\.<\/p>\n<pre>/);
    expect(shown.text).toContain(`${id}, redemption: Mr. &#60;Pine&#62;</pre>`);
  }
  expect((await show("admin", organization, { ref: "Mr. Pin" })).text).toContain("Nothing is held about reference");
  const { rows } = await db.query(
    "SELECT entity_type AS type, os_user, arguments FROM audit_entries WHERE command = 'person show' ORDER BY id",
  );
  const by = (kind: string) => ({ os_user: operators.admin.name, arguments: { by: kind } });
  expect(rows).toEqual([
    { type: "VoucherInstance", ...by("voucher") },
    { type: "Organization", ...by("reference") },
    { type: "Organization", ...by("reference") },
  ]);
});
