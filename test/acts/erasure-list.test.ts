import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import type { ErasedPerson } from "../../src/acts/find-person.ts";
import { listErasures, replayErasures } from "../../src/acts/replay-erasures.ts";
import { verifyOneChain } from "../../src/core/chain/verify-chains.ts";
import { partnerClient } from "../support/client.ts";
import { makeOffer, newUser } from "../support/marketplace.ts";
import { bypassTriggers, databaseTime, untilPast } from "../support/outside-transaction.ts";
import { tablesWith } from "../support/row-dump.ts";
import { makeKey, provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { useVoucherctl } from "../support/voucherctl.ts";

const { api, servers, db, partner, till, issue, as } = useService({ users: true });
const directory = mkdtempSync(join(tmpdir(), "voucher-erasures-"));
afterAll(() => rmSync(directory, { recursive: true }));

const erase = (person: ErasedPerson) => erasePerson(provisioning(db), person, null);
const ofOrder = (externalRef: string): ErasedPerson => ({
  by: "reference",
  organizationId: partner.organizationId,
  externalRef,
});

type Offer = Awaited<ReturnType<typeof makeOffer>>;
const NOTHING = { vouchers: 0, events: 0, references: 0 };

const ACQUISITIONS = [
  { kind: "claim", take: async (userId: string, { productId }: Offer) => (await as(userId)).claimProduct(productId) },
  { kind: "purchase", take: async (userId: string, { listingId }: Offer) => (await as(userId)).buyListing(listingId) },
];

/** Returns the texts that replaced erased user ids and references, for the erasures since a time. */
async function listedSince(since: Date): Promise<string[]> {
  const { users, references } = await listErasures({ pool: db }, since);
  return [...users, ...references.map(({ reference }) => reference)];
}

it.each(
  ACQUISITIONS,
)("an erasure of a user with only a $kind adds a row to the list of erasures, unless nothing was erased", async ({
  take,
}) => {
  const userId = newUser("Mr. Violet");
  const form = await formOf("", userId);
  const listed = async (since: Date) => (await listedSince(since)).includes(form);
  for (const round of ["first", "later"]) {
    const since = await databaseTime(db);
    await take(userId, await makeOffer(db, 1));
    expect(await erase({ by: "user", userId }), round).toMatchObject({ vouchers: 1, events: 1 });
    expect(await listed(since), round).toBe(true);
    const { rows } = await db.query("SELECT * FROM erased_users");
    expect(await erase({ by: "user", userId }), round).toEqual(NOTHING);
    expect((await db.query("SELECT * FROM erased_users")).rows, round).toEqual(rows);
  }
});

it("the list of erasures contains each reference that was erased from an order, a voucher or a batch", async () => {
  const [ofOrderOnly, ofVoucher] = [await redeem(), await redeem()];
  const since = await databaseTime(db);
  const form = (text: string) => formOf(partner.organizationId, text);
  await db.query(
    `INSERT INTO issue_references (organization_id, issue_ref, batch_id, terms)
     SELECT organization_id, 'a batch for Mrs. Smith', batch_id, '{}' FROM vouchers WHERE id = $1`,
    [ofVoucher.id],
  );
  expect(await listedSince(since)).toEqual([]);
  await erase(ofOrder(ofOrderOnly.externalRef));
  await erase({ by: "voucher", voucherId: ofVoucher.id });
  await erase(ofOrder("a batch for Mrs. Smith"));
  const texts = [ofOrderOnly.externalRef, ofVoucher.externalRef, "a batch for Mrs. Smith"];
  expect((await listedSince(since)).toSorted()).toEqual((await Promise.all(texts.map(form))).toSorted());
});

it("an erasure replay after a failover keeps the event that has reused an erased event's sequence", async () => {
  const { id, code, externalRef } = await redeem();
  await erase(ofOrder(externalRef));
  const { items } = await listErasures({ pool: db }, new Date(0));
  const listed = items.filter(({ voucherId }) => voucherId === id);
  expect(listed).toMatchObject([{ sequences: [2] }]);
  await setBackToIssued(id);
  const { body: reserved } = await till.reserve(code);
  await till.release(reserved.ticket, "Mr. Jones left");
  expect(await till.redeem({ code, externalRef: "Mr. Jones" })).toMatchObject({ status: 200 });

  const replay = (erasedAt: string) =>
    replayErasures(provisioning(db), {
      items: listed.map((item) => ({ ...item, erasedAt })),
      users: [],
      usersErasedAt: {},
      references: [],
    });
  expect(await replay(String(listed[0]?.erasedAt))).toEqual({ ...NOTHING, otherEvents: 1 });
  expect((await tablesWith(db, "Mr. Jones")).toSorted()).toEqual(["redemptions", "reservations", "voucher_events"]);
  expect(await verifyOneChain({ pool: db }, id)).toMatchObject({ broken: [], erased: 0 });
  expect(await replay((await databaseTime(db)).toISOString())).toMatchObject({
    vouchers: 1,
    events: 1,
    otherEvents: 0,
  });
  expect(await tablesWith(db, "Mr. Jones")).toEqual([]);
});

it("erasure replay erases the listed events, but keeps and counts events after the listed time", async () => {
  const offer = await makeOffer(db, 1);
  const { voucher } = (await (await as(newUser("Ms. Pink"))).claimProduct(offer.productId)).body;
  const erasedAt = await databaseTime(db);
  await untilPast(db, erasedAt);
  const { key } = await makeKey(db, offer.organizationId);
  await partnerClient(api.url, key).redeem({ code: voucher.code, externalRef: "Ms. Pink's order" });
  const file = join(directory, "erasures.json");
  const items = [{ voucherId: voucher.id, sequences: [2, 3], erasedAt }];
  writeFileSync(file, JSON.stringify({ items, users: [], references: [] }));
  const voucherctl = useVoucherctl(servers);
  const said = "Erased 1 event of 1 voucher. Left 1 listed event that occurred after the erasure.\n";
  expect(await voucherctl.text(`erasure replay ${file} --yes`)).toBe(said);
  expect(await voucherctl.json(`erasure replay ${file} --yes`)).toEqual({ vouchers: 0, events: 0 });
  expect((await tablesWith(db, "Ms. Pink")).toSorted()).toEqual(["redemptions", "voucher_events"]);
});

/** Sets a voucher back to its state after the issue, as on a standby that lags. */
const setBackToIssued = (id: string) =>
  bypassTriggers(
    db,
    `DELETE FROM log_batches WHERE id IN (SELECT log_slot >> 12 FROM voucher_events
                                          WHERE voucher_id = '${id}' AND sequence > 1);
     DELETE FROM voucher_events WHERE voucher_id = '${id}' AND sequence > 1;
     DELETE FROM redemptions WHERE voucher_id = '${id}';
     DELETE FROM erasures WHERE voucher_id = '${id}';
     UPDATE vouchers AS v SET status = 'Active', redeemed_at = NULL, last_sequence = 1, sealed_sequence = 1,
            sealed_hash = e.record_hash
       FROM voucher_events AS e WHERE v.id = '${id}' AND e.voucher_id = v.id`,
  );

let orders = 0;

async function redeem() {
  orders += 1;
  const { id, code } = await issue();
  const externalRef = `Mrs. Smith ${orders}`;
  expect(await till.redeem({ code, externalRef })).toMatchObject({ status: 200 });
  return { id, code, externalRef };
}

const formOf = async (owner: string, text: string): Promise<string> =>
  (await db.query("SELECT erased_form($1, $2) AS form", [owner, text])).rows[0].form;
