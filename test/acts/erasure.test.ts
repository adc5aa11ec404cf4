import { expect, it } from "vitest";
import { type ErasedPerson, erasePerson } from "../../src/acts/erase-person.ts";
import { listErasures, replayErasures } from "../../src/acts/replay-erasures.ts";
import { verifyOneChain } from "../../src/core/chain/verify-chains.ts";
import { send } from "../support/client.ts";
import { makeMember, makeOffer, makeReferral, newUser, readAcquisitions } from "../support/marketplace.ts";
import { besideTransaction, lockRows, untilWaiting } from "../support/outside-transaction.ts";
import { readReservation } from "../support/recorded.ts";
import { provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const { api, servers, db, partner, till, issue, as } = useService({ users: true });

const erase = (person: ErasedPerson, reason: string | null = null) => erasePerson(provisioning(db), person, reason);
const ofOrder = (externalRef: string): ErasedPerson => ({
  by: "reference",
  organizationId: partner.organizationId,
  externalRef,
});

const FORM = /^erased:[\w-]{22}$/;
const NOTHING = { vouchers: 0, events: 0, references: 0 };

let orders = 0;
/** Redeems a new voucher under a new reference, with a note. */
async function redeem() {
  orders += 1;
  const { id, code } = await issue();
  const body = { code, externalRef: `Mrs. Smith ${orders}`, note: `a note about Mrs. Smith ${orders}` };
  const { status, body: first } = await till.redeem(body);
  expect(status).toBe(200);
  return { id, code, body, first };
}

it("a retry with an erased reference gets the first result, and both spellings find the redemption", async () => {
  const { id, body, first } = await redeem();
  expect(await erase(ofOrder(body.externalRef), "asked for")).toEqual({ vouchers: 1, events: 1, references: 1 });
  expect(await erase(ofOrder(body.externalRef))).toEqual(NOTHING);
  const repeated = { status: 200, body: { ...first, alreadyConfirmed: true } };
  expect(await till.redeem(body)).toMatchObject(repeated);
  const other = await issue();
  expect(await till.redeem({ ...body, code: other.code })).toMatchObject({ body: { otherVoucher: true } });
  const { rows } = await db.query("SELECT external_ref AS form FROM redemptions WHERE voucher_id = $1", [id]);
  expect(rows[0].form).toMatch(FORM);
  for (const reference of [body.externalRef, rows[0].form])
    expect(await till.redemption(reference)).toMatchObject(repeated);
  expect(await till.redeem({ ...body, externalRef: rows[0].form })).toMatchObject({ status: 400 });
});

it("an erased event keeps its hashes, names the event that erased it, and leaves the chain intact", async () => {
  const { id, code, body } = await redeem();
  const { body: before } = await till.events(code);
  await erase(ofOrder(body.externalRef), "asked for");
  const { body: after } = await till.events(code);
  expect(after.events[1]).toEqual({ ...before.events[1], payload: null, erasedBy: 3 });
  expect(after.events[2]).toMatchObject({ eventType: "voucher.instance.erased", code: "VCH007", erasedSequences: [2] });
  expect(JSON.parse(after.events[2].payload).data).toMatchObject({ erasedSequences: [2], reason: "asked for" });
  const { body: seen } = await send("GET", `${api.url}/integrity/events/VoucherInstance/${id}`);
  expect([seen.events[1].erasedBy, seen.events[2].erasedSequences]).toEqual([3, [2]]);
  expect(await verifyOneChain({ pool: db }, id)).toMatchObject({ broken: [], erased: 1 });
});

it("an erased user's claim and purchase are still recognized, and nothing else names the user", async () => {
  const offer = await makeOffer(db, 3);
  const userId = newUser('Jane "J" Doe\\');
  const user = await as(userId);
  await makeMember(db, { organizationId: offer.organizationId, userId, role: "employee" });
  const paymentRef = `${userId} pays`;
  const claimed = await user.claimProduct(offer.productId);
  const bought = await user.buyListing(offer.listingId, { paymentRef });
  expect(await erase({ by: "user", userId })).toMatchObject({ vouchers: 2, events: 2 });
  expect(await erase({ by: "user", userId })).toEqual(NOTHING);
  const again = [await user.claimProduct(offer.productId), await user.buyListing(offer.listingId, { paymentRef })];
  for (const [at, first] of [claimed, bought].entries()) {
    expect(again[at]).toMatchObject({
      status: 200,
      body: { alreadyConfirmed: true, voucher: { id: first.body.voucher.id } },
    });
  }
  const kept = await readAcquisitions(
    db,
    offer.vouchers.map(({ id }) => id),
  );
  expect(kept.map((one) => one.userId)).toEqual([expect.stringMatching(FORM), expect.stringMatching(FORM)]);
  expect(await textsWith(userId)).toEqual([]);
});

it("erasing a referrer erases the claims by its links, which stay claims of their users", async () => {
  const offer = await makeOffer(db, 2);
  const { code, referrerId } = await makeReferral(db, offer);
  const user = await as();
  const first = await user.claimByLink(code);
  expect(await erase({ by: "user", userId: referrerId })).toMatchObject({ vouchers: 1, events: 1 });
  expect(await textsWith(referrerId)).toEqual([]);
  expect((await user.claimProduct(offer.productId)).body.voucher.id).toBe(first.body.voucher.id);
});

it("erasing an order erases the reasons of the voucher's releases", async () => {
  const { code } = await issue();
  const { body: reserved } = await till.reserve(code);
  await till.release(reserved.ticket, "Mr. Jones left");
  await till.redeem({ code, externalRef: "Mr. Jones" });
  await erase(ofOrder("Mr. Jones"));
  expect(await readReservation(db, reserved.ticket)).toMatchObject({ state: "Released", endReason: null });
  expect(await textsWith("Mr. Jones")).toEqual([]);
});

it("an erasure waits for a redemption under way, and a retry gets the redemption's result", async () => {
  const { id, code } = await issue();
  const body = { code, externalRef: "races" };
  const [redeemed, erased] = await besideTransaction(db, async (outside) => {
    await lockRows(outside, [id]);
    const redeeming = till.redeem(body);
    await untilWaiting(db, 1, "worker");
    const erasing = erase({ by: "voucher", voucherId: id });
    await outside.query("ROLLBACK");
    return Promise.all([redeeming, erasing]);
  });
  expect(redeemed.status).toBe(200);
  if (erased.events === 0) await erase({ by: "voucher", voucherId: id });
  expect(await till.redeem({ ...body, code: (await issue()).code })).toMatchObject({
    status: 200,
    body: { redeemCode: redeemed.body.redeemCode, alreadyConfirmed: true, otherVoucher: true },
  });
});

it("an attempt whose reference is redeemed and erased while it waits redeems no second voucher", async () => {
  const [one, other] = [await issue(), await issue()];
  const externalRef = "waits";
  const [first, waited] = await besideTransaction(db, async (outside) => {
    await lockRows(outside, [other.id]);
    const waiting = till.redeem({ code: other.code, externalRef });
    await untilWaiting(db, 1, "worker");
    const redeemed = await till.redeem({ code: one.code, externalRef });
    expect(await erase(ofOrder(externalRef))).toMatchObject({ events: 1 });
    await outside.query("ROLLBACK");
    return Promise.all([redeemed, waiting]);
  });
  expect(waited).toMatchObject({ status: 200, body: { redeemCode: first.body.redeemCode, otherVoucher: true } });
});

it("a finished redeem job keeps neither reference nor note", async () => {
  const { id } = await redeem();
  const texts = async () => {
    const keys = await servers.redis.keys(`*:redeem:${id}-*`);
    return Promise.all(keys.map((key) => servers.redis.hget(key, "data")));
  };
  await until(async () => (await texts()).every((text) => !/Smith/.test(text ?? "")));
  expect(await texts()).toEqual([expect.stringContaining(id)]);
});

it("the list of erasures names no person, and its replay finds nothing that is not erased", async () => {
  const { body } = await redeem();
  await erase(ofOrder(body.externalRef));
  const listed = await listErasures({ pool: db }, new Date(0));
  expect(JSON.stringify(listed)).not.toMatch(/Smith|Doe|Jones/);
  expect(listed.references.length).toBeGreaterThan(0);
  expect(await replayErasures(provisioning(db), listed)).toEqual(NOTHING);
});

/** The tables that contain a text. */
async function textsWith(text: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables
      WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
  );
  const found: string[] = [];
  for (const { name } of rows) {
    const quoted = JSON.stringify(text).slice(1, -1);
    const { rowCount } = await db.query(
      `SELECT FROM ${name} AS t
        WHERE strpos(t::text, $1) > 0 OR strpos(to_json(t)::text, $2) > 0 OR strpos(t::text, $2) > 0`,
      [text, quoted],
    );
    if (rowCount !== 0) found.push(name);
  }
  return found;
}
