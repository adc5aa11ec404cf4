import { expect, it } from "vitest";
import { type ErasedPerson, erasePerson } from "../../src/acts/erase-person.ts";
import { listErasures } from "../../src/acts/replay-erasures.ts";
import { makeOffer, newUser } from "../support/marketplace.ts";
import { provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { db, partner, till, issue, as } = useService({ users: true });

const erase = (person: ErasedPerson) => erasePerson(provisioning(db), person, null);
const ofOrder = (externalRef: string): ErasedPerson => ({
  by: "reference",
  organizationId: partner.organizationId,
  externalRef,
});

type Offer = Awaited<ReturnType<typeof makeOffer>>;
const NOTHING = { vouchers: 0, events: 0, references: 0 };

/** How a user gets a voucher of an offer. */
const ACQUISITIONS = [
  { kind: "claim", take: async (userId: string, { productId }: Offer) => (await as(userId)).claimProduct(productId) },
  { kind: "purchase", take: async (userId: string, { listingId }: Offer) => (await as(userId)).buyListing(listingId) },
];

/** The replaced texts that the list of erasures has since a time. */
async function listedSince(since: Date): Promise<string[]> {
  const { users, references } = await listErasures({ pool: db }, since);
  return [...users, ...references.map(({ reference }) => reference)];
}

it.each(
  ACQUISITIONS,
)("a user with a $kind only is listed at each erasure, and a run that finds nothing changes no list", async ({
  take,
}) => {
  const userId = newUser("Mr. Violet");
  const form = await formOf("", userId);
  const listed = async (since: Date) => (await listedSince(since)).includes(form);
  for (const round of ["first", "later"]) {
    const since = await readClock();
    await take(userId, await makeOffer(db, 1));
    expect(await erase({ by: "user", userId }), round).toMatchObject({ vouchers: 1, events: 1 });
    expect(await listed(since), round).toBe(true);
    const { rows } = await db.query("SELECT * FROM erased_users");
    expect(await erase({ by: "user", userId }), round).toEqual(NOTHING);
    expect((await db.query("SELECT * FROM erased_users")).rows, round).toEqual(rows);
  }
});

it("a reference is listed when it is erased, by the order, by the voucher or as that of a batch only", async () => {
  const [ofOrderOnly, ofVoucher] = [await redeem(), await redeem()];
  const since = await readClock();
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

let orders = 0;

/** Redeems a new voucher under a new reference. */
async function redeem() {
  orders += 1;
  const { id, code } = await issue();
  const externalRef = `Mrs. Smith ${orders}`;
  expect(await till.redeem({ code, externalRef })).toMatchObject({ status: 200 });
  return { id, code, externalRef };
}

const formOf = async (owner: string, text: string): Promise<string> =>
  (await db.query("SELECT erased_form($1, $2) AS form", [owner, text])).rows[0].form;
const readClock = async (): Promise<Date> => (await db.query("SELECT clock_timestamp() AS now")).rows[0].now;
