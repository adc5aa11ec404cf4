import { readFileSync } from "node:fs";
import { beforeAll, expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { createOperator } from "../../src/acts/operator/create.ts";
import { voidById } from "../../src/acts/void-voucher.ts";
import { auditedCommand } from "../../src/acts/with-audit-entry.ts";
import { EVENT_CODES } from "../../src/core/chain/chain.ts";
import { recordExpiries } from "../../src/core/chain/record-expiries.ts";
import { beginFaults } from "../../src/watch/db/faults.ts";
import type { Facts } from "../../src/watch/facts.ts";
import { findPausedQueues } from "../../src/watch/judge-redeeming.ts";
import { makeOffer, makeReferral } from "../support/marketplace.ts";
import { provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { db, till, issue, as } = useService({ users: true });

/** The part of SECURITY.md that says where personal data is. */
const SECTION =
  /## Personal data\n([\s\S]*?)\n## /.exec(readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8"))?.[1] ??
  "";
/** The names of columns, or of keys of payloads, in a text. */
const namesIn = (text: string) => Array.from(text.matchAll(/`(\w+\.\w+)`/g), ([, name]) => String(name));
/** What the second column of the table names. */
const PERSONAL = new Set(namesIn(Array.from(SECTION.matchAll(/^\|[^|]*\|([^|]*)\|/gm), ([, where]) => where).join()));
/** What the lists of columns and of keys without persons name. */
const IMPERSONAL = namesIn(SECTION.match(/^These .* name no person: (?:`[\w.]+`[,.]\s+)+/gm)?.join() ?? "");
const isOfPayload = (name: string) => name.startsWith("payload.");

/** Texts that name a person, or that someone may have written about one. */
const MARK = "ada-lovelace";

beforeAll(async () => {
  const offer = await makeOffer(db, 4);
  const { code: link } = await makeReferral(db, offer);
  const user = await as(`${MARK} who claims`);
  const [used, voided, released] = [await issue(), await issue(), await issue()];
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
  const operator = provisioning(db);
  operator.audited = auditedCommand("voucher void", { reason: `${MARK} asked` }, { user: `${MARK}, an operator` });
  await voidById(operator, voided.id, `${MARK} asked`);
  const named = { name: `${MARK}, an operator`, role: "admin", expires: null } as const;
  await createOperator.run(operator, "", named);
  const pause = { queue: "redeem", isPaused: true, by: named.name, since: new Date() };
  const redeem = { queue: "redeem", shard: "a", paused: true };
  const found = findPausedQueues({ queues: [{ queues: [redeem] }], pauses: [pause] } as unknown as Facts) ?? [];
  const told = { beganAt: new Date(), name: "VouchersQueuePaused", page: "", severity: "red" } as const;
  await beginFaults(
    db,
    found.map(({ subject, what }) => ({ ...told, subject, what })),
  );
  const { id } = await issue();
  await voidById(provisioning(db), id, "a reason");
  await erasePerson(provisioning(db), { by: "voucher", voucherId: id }, "a reason");
  await issue({ validUntil: new Date(Date.now() - 1_000) });
  await recordExpiries(provisioning(db), performance.now() + 1_000);
});

it("each column for texts is in SECURITY.md, either as personal or as one that names no person", async () => {
  const columns = (await selectColumns()).toSorted();
  expect(columns.length).toBeGreaterThan(100);
  expect([...PERSONAL, ...IMPERSONAL].filter((name) => !isOfPayload(name)).toSorted()).toEqual(columns);
});

it("each key of a payload is in SECURITY.md, either as personal or as one that names no person", async () => {
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

it("no column contains what names a person but those that SECURITY.md says", async () => {
  const found: string[] = [];
  for (const name of await selectColumns()) {
    const [table, column] = name.split(".");
    const { rowCount } = await db.query(`SELECT FROM ${table} WHERE strpos(${column}::text, $1) > 0 LIMIT 1`, [MARK]);
    if (rowCount !== 0) found.push(name);
  }
  expect(found.length).toBeGreaterThan(10);
  expect(found.filter((name) => !PERSONAL.has(name))).toEqual([]);
});

/** The columns that can hold a text. */
async function selectColumns(): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
      WHERE table_schema = 'public' AND data_type IN ('text', 'json', 'jsonb', 'ARRAY', 'character varying')`,
  );
  return rows.map(({ name }) => name);
}
