import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { voidById } from "../../src/acts/void-voucher.ts";
import { recordExpiries } from "../../src/core/chain/record-expiries.ts";
import { makeOffer, makeReferral } from "../support/marketplace.ts";
import { provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { db, till, issue, as } = useService({ users: true });

/** The part of SECURITY.md that says where personal data is. */
const SECTION =
  /## Personal data\n([\s\S]*?)\n## /.exec(readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8"))?.[1] ??
  "";
const names = new Set(Array.from(SECTION.matchAll(/`([\w.]+)`/g), ([, name]) => name));

it("every column that can hold a text has its place in SECURITY.md's table of personal data", async () => {
  const { rows } = await db.query<{ name: string }>(
    `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
      WHERE table_schema = 'public' AND data_type IN ('text', 'json', 'jsonb', 'ARRAY', 'character varying')`,
  );
  expect(rows.length).toBeGreaterThan(100);
  expect(rows.map(({ name }) => name).filter((name) => !names.has(name))).toEqual([]);
});

it("every key of a payload has its place in SECURITY.md's table of personal data", async () => {
  const offer = await makeOffer(db, 4);
  const { code: link } = await makeReferral(db, offer);
  const [user, other] = [await as(), await as()];
  await user.claimByLink(link);
  await other.buyListing(offer.listingId);
  const [used, voided] = [await issue(), await issue()];
  const { body: reserved } = await till.reserve(used.code);
  await till.redeem({ ticket: reserved.ticket, externalRef: "a reference", note: "a note" });
  await voidById(provisioning(db), voided.id, "a reason");
  await erasePerson(provisioning(db), { by: "voucher", voucherId: voided.id }, "a reason");
  await issue({ validUntil: new Date(Date.now() - 1_000) });
  await recordExpiries(provisioning(db), performance.now() + 1_000);
  const { rows } = await db.query<{ type: string; name: string }>(
    `SELECT DISTINCT event_type AS type, k AS name
       FROM voucher_events, jsonb_object_keys(payload::jsonb || (payload::jsonb -> 'data')) AS k
      WHERE payload IS NOT NULL`,
  );
  expect(new Set(rows.map(({ type }) => type)).size).toBe(6);
  expect([...new Set(rows.map(({ name }) => name))].filter((name) => !names.has(`payload.${name}`))).toEqual([]);
});
