import { readFileSync } from "node:fs";
import { beforeAll, expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { extendById } from "../../src/acts/extend-voucher.ts";
import { createOperator } from "../../src/acts/operator/create.ts";
import { resumeById, suspendById } from "../../src/acts/suspend-voucher.ts";
import { voidById } from "../../src/acts/void-voucher.ts";
import { auditedCommand } from "../../src/acts/with-audit-entry.ts";
import { EVENT_CODES } from "../../src/core/chain/chain.ts";
import { recordExpiries } from "../../src/core/chain/record-expiries.ts";
import { createLink } from "../../src/marketplace/acts.ts";
import { beginFaults } from "../../src/watch/db/faults.ts";
import { basic, browse, OPS_TOKEN } from "../support/browse.ts";
import { send } from "../support/client.ts";
import { makeContract, makeOffer } from "../support/marketplace.ts";
import { bypassTriggers } from "../support/outside-transaction.ts";
import { makeKey, provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { useVoucherctl } from "../support/voucherctl.ts";
import { IMPERSONAL_COLUMNS, IMPERSONAL_KEYS } from "./impersonal-names.ts";

const env = { OPS_TOKEN, OPS_WRITABLE: "true", METRICS_PORT: "0", ISSUER_API: "true" };
const { api, servers, db, partner, till, issue, as } = useService({ users: true, env });

/** The document about personal data. */
const DOCUMENT = readFileSync(new URL("../../docs/personal-data.md", import.meta.url), "utf8");
/** Returns the names in backticks in a text: of columns, or of keys in payloads. */
const namesIn = (text: string) => Array.from(text.matchAll(/`(\w+\.\w+)`/g), ([, name]) => String(name));
/** The names that docs/personal-data.md lists in the second column of its table. */
const PERSONAL = new Set(namesIn(Array.from(DOCUMENT.matchAll(/^\|[^|]*\|([^|]*)\|/gm), ([, where]) => where).join()));
const IMPERSONAL = Object.entries({ ...IMPERSONAL_COLUMNS, payload: IMPERSONAL_KEYS }).flatMap(([table, names]) =>
  names.split(/\s+/).map((name) => `${table}.${name}`),
);
const isOfPayload = (name: string) => name.startsWith("payload.");

/** A word that the test puts into each text that may name a person. */
const MARK = "ada-lovelace";

beforeAll(async () => {
  await writeAsUsers();
  await writeAsOperators();
  await writeAsIssuers();
});

it("each text column is in docs/personal-data.md or listed as without personal data", async () => {
  const columns = (await selectColumns()).toSorted();
  expect(columns.length).toBeGreaterThan(100);
  expect([...PERSONAL, ...IMPERSONAL].filter((name) => !isOfPayload(name)).toSorted()).toEqual(columns);
});

it("each key of an event's payload is in docs/personal-data.md or listed as without personal data", async () => {
  const { rows } = await db.query<{ type: string; name: string; isPersonal: boolean }>(
    `SELECT event_type AS type, 'payload.' || k AS name,
            bool_or(strpos(v::text, $1) > 0 AND k <> 'data') AS "isPersonal"
       FROM voucher_events, jsonb_each(payload::jsonb || (payload::jsonb -> 'data')) AS e (k, v)
      WHERE payload IS NOT NULL GROUP BY 1, 2`,
    [MARK],
  );
  expect([...new Set(rows.map(({ type }) => type))].toSorted()).toEqual(Object.keys(EVENT_CODES).toSorted());
  const keys = [...PERSONAL, ...IMPERSONAL].filter(isOfPayload);
  expect(keys).toEqual([...new Set(keys)]);
  expect(rows.filter(({ name }) => !keys.includes(name))).toEqual([]);
  expect(rows.filter(({ name, isPersonal }) => isPersonal && !PERSONAL.has(name))).toEqual([]);
});

it("exactly the columns in docs/personal-data.md contain texts that name a person", async () => {
  const found: string[] = [];
  for (const name of await selectColumns()) {
    const [table, column] = name.split(".");
    const { rowCount } = await db.query(`SELECT FROM ${table} WHERE strpos(${column}::text, $1) > 0 LIMIT 1`, [MARK]);
    if (rowCount !== 0) found.push(name);
  }
  const columns = [...PERSONAL].filter((name) => !isOfPayload(name));
  expect(found.toSorted()).toEqual(columns.toSorted());
});

/** Lists the columns that can hold a text. */
async function selectColumns(): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
      WHERE table_schema = 'public' AND data_type IN ('text', 'json', 'jsonb', 'ARRAY', 'character varying')`,
  );
  return rows.map(({ name }) => name);
}

/** Users and a partner write `MARK` in every text of their calls. */
async function writeAsUsers() {
  const offer = await makeOffer(db, 4);
  const contractId = await makeContract(db, offer.brandId, `${MARK} who refers`);
  const { code: link } = await createLink.run(provisioning(db), contractId, { product: offer.productId });
  const user = await as(`${MARK} who claims`);
  const [used, released] = [await issue(), await issue()];
  const [{ ticket }, { ticket: left }] = [await till.reserve(used.code), await till.reserve(released.code)].map(
    ({ body }) => body,
  );
  const replies = [
    await user.claimByLink(link),
    await user.buyListing(offer.listingId, { paymentRef: `${MARK} pays` }),
    await till.redeem({ ticket, externalRef: `an order of ${MARK}`, note: `a note on ${MARK}` }),
    await till.release(left, `${MARK} left`),
  ];
  expect(replies.filter(({ status }) => status >= 300)).toEqual([]);
  const { status } = await till.redeem({ code: "7Q4K-9MZX-2HTB-W8RC", externalRef: `a refused order of ${MARK}` });
  expect(status).toBe(404);
}

/** Operators write `MARK` as names and reasons. */
async function writeAsOperators() {
  const [voided, erased] = [await issue(), await issue()];
  const operator = provisioning(db);
  const acting = { user: `${MARK}, an operator`, host: `the laptop of ${MARK}` };
  operator.audited = auditedCommand("voucher void", { reason: `${MARK} asked` }, acting);
  await extendById(operator, voided.id, new Date("2999-12-31"), `${MARK} asked`);
  await suspendById(operator, voided.id, `${MARK} lost it`);
  await resumeById(operator, voided.id, `${MARK} found it`);
  await voidById(operator, voided.id, `${MARK} asked`);
  const named = { name: `${MARK}, an operator`, role: "admin", expires: null } as const;
  await createOperator.run(operator, "", named);
  const fault = { kind: "VouchersQueuePaused", subject: "redeem", page: "", severity: "red", what: "Paused" } as const;
  await beginFaults(db, [{ ...fault, since: new Date(), told: null }]);
  await voidById(provisioning(db), erased.id, "a reason");
  await erasePerson(provisioning(db), { by: "voucher", voucherId: erased.id }, "a reason");
  await issue({ validUntil: new Date(Date.now() - 1_000) });
  await recordExpiries(provisioning(db), performance.now() + 1_000);
}

/** Issuers write `MARK` as names, by commands, a form and the issuer API. */
async function writeAsIssuers() {
  const { organizationId: org, productId, brandId } = partner;
  const { key } = await makeKey(db, org, { scopes: ["voucher.issue"] });
  const terms = { count: 1, validUntil: "2099-12-31", issueRef: `a batch for ${MARK}` };
  const issued = await send("POST", `${api.url}/issuer/products/${productId}/batches`, { key, body: terms });
  expect(issued.status).toBe(200);
  const voucherctl = useVoucherctl(servers);
  for (const command of [
    `batch suspend ${issued.body.id} --reason 'a batch that ${MARK} lost'`,
    `batch void ${issued.body.id} --yes --reason 'a batch that ${MARK} lost'`,
    `key create --org ${org} --scope voucher.read --label 'the till of ${MARK}'`,
    `webhook create --org ${org} --url https://shop.example.com/hooks --description 'the hook of ${MARK}'`,
    `member add --org ${org} --user ${MARK} --role employee`,
  ])
    await voucherctl.json(command);
  const named = JSON.stringify({ final: true, month: "2001-01", lines: [{ keyLabel: `the till of ${MARK}` }] });
  await bypassTriggers(
    db,
    `INSERT INTO statements (organization_id, month, content) VALUES ('${org}', '2001-01', '${named}')`,
  );
  const { id } = await voucherctl.json(`contract offer --brand ${brandId} --user ${MARK}`);
  await voucherctl.json(`contract decline ${id}`);
  const form = { formToken: crypto.randomUUID(), user: `${MARK}, of a form`, role: "owner" };
  const path = `${api.url}/ops/organizations/${org}/members/new`;
  expect(await browse(path, { form, headers: basic(OPS_TOKEN) })).toMatchObject({ status: 303 });
}
