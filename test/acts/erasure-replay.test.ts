import { expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { addMember } from "../../src/acts/member/add.ts";
import { listErasures, parseErasures, replayErasures } from "../../src/acts/replay-erasures.ts";
import { partnerClient } from "../support/client.ts";
import { makeContract, makeMember, makeOffer, newUser } from "../support/marketplace.ts";
import { databaseTime, untilPast } from "../support/outside-transaction.ts";
import { issueVouchers, makeKey, makePartner, provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { api, db, partner, till, as } = useService({ users: true });

const NOTHING = { vouchers: 0, events: 0, references: 0, otherEvents: 0 };
const formOf = async (owner: string, text: string): Promise<string> =>
  (await db.query("SELECT erased_form($1, $2) AS form", [owner, text])).rows[0].form;
const replay = (list: object) => replayErasures(provisioning(db), parseErasures(JSON.stringify(list)));

const claimed = async (userId: string, productId: string) => (await as(userId)).claimProduct(productId);
const voucherOf = ({ status, body }: Awaited<ReturnType<typeof claimed>>): string => {
  expect(status).toBe(200);
  return body.voucher.id;
};

it("an erasure replay for a user keeps later redemptions and releases of the user's vouchers", async () => {
  const userId = newUser("Mr. Black");
  const form = await formOf("", userId);
  const offer = await makeOffer(db, 1);
  const { voucher } = (await claimed(userId, offer.productId)).body;
  const erasedAt = await databaseTime(db);
  await untilPast(db, erasedAt);
  const { key } = await makeKey(db, offer.organizationId);
  const ofOffer = partnerClient(api.url, key);
  await ofOffer.release((await ofOffer.reserve(voucher.code)).body.ticket, "Mr. Black left");
  const { body: redeemed } = await ofOffer.redeem({ code: voucher.code, externalRef: "Mr. Black's order" });
  expect(redeemed).toMatchObject({ redeemed: true });
  await replay({ items: [], users: [form], usersErasedAt: { [form]: erasedAt }, references: [] });
  const { rows } = await db.query(
    `SELECT c.user_id, rd.external_ref, r.end_reason FROM claims AS c JOIN redemptions AS rd USING (voucher_id)
       JOIN reservations AS r ON r.voucher_id = c.voucher_id AND r.state = 'Released' WHERE c.voucher_id = $1`,
    [voucher.id],
  );
  expect(rows).toEqual([{ user_id: form, external_ref: "Mr. Black's order", end_reason: "Mr. Black left" }]);
});

it("an erasure replay for a reference keeps a batch and an order that got the reference later", async () => {
  const { organizationId } = partner;
  const refs = ["Mrs. Brown 1", "Mrs. Brown 2"];
  const issued = async (ref: string) => {
    const [first] = await issueVouchers(db, partner, 1);
    await db.query(
      `INSERT INTO issue_references (organization_id, issue_ref, batch_id, terms)
       SELECT $1, $2, batch_id, '{}' FROM vouchers WHERE id = $3`,
      [organizationId, ref, first?.id],
    );
    return String(first?.code);
  };
  const code = await issued(refs[0] ?? "");
  const erasedAt = await databaseTime(db);
  await untilPast(db, erasedAt);
  await issued(refs[1] ?? "");
  const { body: redeemed } = await till.redeem({ code, externalRef: refs[0] ?? "" });
  expect(redeemed).toMatchObject({ redeemed: true });
  const since = await databaseTime(db);
  const references = await Promise.all(
    refs.map(async (ref) => ({ organizationId, reference: await formOf(organizationId, ref), erasedAt })),
  );
  const texts = async () =>
    (
      await db.query(
        `SELECT issue_ref AS text FROM issue_references WHERE organization_id = $1 UNION ALL
         SELECT external_ref FROM redemptions WHERE organization_id = $1 ORDER BY text`,
        [organizationId],
      )
    ).rows.map(({ text }) => text);
  expect(await replay({ items: [], users: [], references })).toMatchObject({ events: 0, references: 1 });
  expect(await texts()).toEqual([refs[0], refs[1], references[0]?.reference]);
  const again = await listErasures({ pool: db }, since);
  expect(again.references).toEqual([{ ...references[0], erasedAt: erasedAt.toISOString() }]);
  expect(
    await replay({ items: [], users: [], references: references.map((one) => ({ ...one, erasedAt: undefined })) }),
  ).toMatchObject({ references: 1 });
  expect(await texts()).toEqual([refs[0], ...references.map(({ reference }) => reference)].toSorted());
});

/**
 * Columns that name a user. For each, a statement that writes a row and returns its id, and a query that finds the row
 * while it names the user.
 */
interface Written {
  what: string;
  write: (userId: string) => Promise<string>;
  find: string;
}

const OF_USERS: readonly Written[] = [
  {
    what: "claim",
    write: async (userId) => voucherOf(await claimed(userId, (await makeOffer(db, 1)).productId)),
    find: "SELECT FROM claims WHERE voucher_id = $1 AND user_id = $2",
  },
  {
    what: "purchase",
    write: async (userId) => voucherOf(await (await as(userId)).buyListing((await makeOffer(db, 1)).listingId)),
    find: "SELECT FROM purchases WHERE voucher_id = $1 AND user_id = $2",
  },
  {
    what: "claim event",
    write: async (userId) => voucherOf(await claimed(userId, (await makeOffer(db, 1)).productId)),
    find: "SELECT FROM voucher_events WHERE voucher_id = $1 AND actor_connected_id = $2 AND payload IS NOT NULL",
  },
  {
    what: "claim by another user through the user's link",
    write: async (userId) => {
      const offer = await makeOffer(db, 1);
      const contractId = await makeContract(db, offer.brandId, userId);
      const link = `link-${contractId}`;
      await db.query("INSERT INTO referral_links (code, contract_id, product_id, brand_id) VALUES ($1, $2, $3, $4)", [
        link,
        contractId,
        offer.productId,
        offer.brandId,
      ]);
      return voucherOf(await (await as(newUser("a friend"))).claimByLink(link));
    },
    find: `SELECT FROM voucher_events WHERE voucher_id = $1 AND payload::jsonb #>> '{data,referrer}' = $2`,
  },
  {
    what: "member",
    write: async (userId) => {
      const { organizationId } = await makePartner(db);
      await addMember.run(provisioning(db), organizationId, { user: userId, role: "employee" });
      return organizationId;
    },
    find: "SELECT FROM members WHERE organization_id = $1 AND user_id = $2",
  },
  {
    what: "audit entry",
    write: async (userId) => {
      const { organizationId: org } = await makePartner(db);
      const ctx = provisioning(db);
      ctx.audited.arguments = { user: userId, org };
      await addMember.run(ctx, org, { user: userId, role: "employee" });
      return org;
    },
    find: "SELECT FROM audit_entries WHERE arguments->>'org' = $1 AND arguments->>'user' = $2",
  },
  {
    what: "sent form",
    write: async (userId) => {
      const token = crypto.randomUUID();
      // The console stores a form with a user's name only if the form changed a member or a contract.
      await makeMember(db, { organizationId: (await makePartner(db)).organizationId, userId, role: "owner" });
      await db.query(
        `INSERT INTO sent_forms (token, command, arguments, entity_id)
         VALUES ($1, 'contract offer', jsonb_build_object('user', $2::text), 'ctr_1')`,
        [token, userId],
      );
      return token;
    },
    find: "SELECT FROM sent_forms WHERE token = $1::uuid AND arguments->>'user' = $2",
  },
  {
    what: "contract",
    write: async (userId) => makeContract(db, (await makePartner(db)).brandId, userId),
    find: "SELECT FROM referrer_contracts WHERE id = $1 AND user_id = $2",
  },
];

/** Returns, for each row, whether it still names the user. */
const naming = (find: string, userId: string, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await db.query(find, [id, userId])).rowCount === 1));

it.each(
  OF_USERS,
)("an erasure replay erases a user's $what from before the erasure, and keeps one from after it", async (of) => {
  const userId = newUser("Mr. Gray");
  const form = await formOf("", userId);
  const early = await of.write(userId);
  const erasedAt = await databaseTime(db);
  await untilPast(db, erasedAt);
  const late = await of.write(userId);
  const since = await databaseTime(db);
  const list = { items: [], users: [form], usersErasedAt: { [form]: erasedAt }, references: [] };

  expect(await naming(of.find, userId, [early, late])).toEqual([true, true]);
  await replay(list);
  expect(await naming(of.find, userId, [early, late])).toEqual([false, true]);
  // The replay keeps the time of the first erasure in the list, so that the next replay keeps the same rows.
  const again = await listErasures({ pool: db }, since);
  expect(again.usersErasedAt[form] ?? erasedAt.toISOString()).toBe(erasedAt.toISOString());
  expect(again.items.filter((item) => item.erasedAt !== erasedAt.toISOString())).toEqual([]);
  expect(await replay(again)).toEqual(NOTHING);
  expect(await naming(of.find, userId, [early, late])).toEqual([false, true]);
  await replay({ items: [], users: [form], references: [] });
  expect(await naming(of.find, userId, [early, late])).toEqual([false, false]);
});

it.each(
  OF_USERS,
)("an erasure replay in a database that was not restored keeps data from after the erasure ($what)", async ({
  write,
  find,
}) => {
  const userId = newUser("Mr. White");
  await write(userId);
  await erasePerson(provisioning(db), { by: "user", userId }, null);
  const list = await listErasures({ pool: db }, new Date(0));
  await untilPast(db, await databaseTime(db));
  const late = await write(userId);
  expect(await replay(list)).toEqual(NOTHING);
  expect(await naming(find, userId, [late])).toEqual([true]);
});
