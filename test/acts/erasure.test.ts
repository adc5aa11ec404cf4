import type pg from "pg";
import { expect, it } from "vitest";
import { eraseEvents } from "../../src/acts/db/erasures.ts";
import { erasePerson } from "../../src/acts/erase-person.ts";
import type { ErasedPerson } from "../../src/acts/find-person.ts";
import { addMember } from "../../src/acts/member/add.ts";
import { erase as eraseAct } from "../../src/acts/person/erase.ts";
import { type HeldAboutPerson, readPerson } from "../../src/acts/read-person.ts";
import { listErasures, replayErasures } from "../../src/acts/replay-erasures.ts";
import { voidById } from "../../src/acts/void-voucher.ts";
import { auditedCommand, withAuditEntry } from "../../src/acts/with-audit-entry.ts";
import { verifyOneChain } from "../../src/core/chain/verify-chains.ts";
import { acceptContract, createLink, offerContract } from "../../src/marketplace/acts.ts";
import { connectClient } from "../../src/platform/db/client.ts";
import { SCHEMA } from "../../src/platform/db/schema.ts";
import { findOlderSessions } from "../../src/platform/db/working-sessions.ts";
import { appendEvent } from "../support/append-event.ts";
import { browse } from "../support/browse.ts";
import { send } from "../support/client.ts";
import { makeMember, makeOffer, makeReferral, newUser, offerBatch, readAcquisitions } from "../support/marketplace.ts";
import {
  besideTransaction,
  bypassTriggers,
  databaseTime,
  holdNextInsert,
  LOCK_WAIT_MS,
  lockRows,
  untilWaiting,
  untilWaitingOr,
  whileLocked,
} from "../support/outside-transaction.ts";
import { readReservation } from "../support/recorded.ts";
import { tablesWith } from "../support/row-dump.ts";
import { issueTestBatch, makePartner, provisioning } from "../support/supply.ts";
import { inTime, until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";
import { openVoucherctl } from "../support/voucherctl.ts";

const { api, servers, db, partner, till, keys, issue, as } = useService({ users: true });

const erase = (person: ErasedPerson, reason: string | null = null) => erasePerson(provisioning(db), person, reason);
const ofOrder = (externalRef: string): ErasedPerson => ({
  by: "reference",
  organizationId: partner.organizationId,
  externalRef,
});

type Offer = Awaited<ReturnType<typeof makeOffer>>;
const FORM = /^erased:[\w-]{22}$/;
const NOTHING = { vouchers: 0, events: 0, references: 0 };

let orders = 0;
async function redeem() {
  orders += 1;
  const { id, code } = await issue();
  const body = { code, externalRef: `Mrs. Smith ${orders}`, note: `a note about Mrs. Smith ${orders}` };
  const { status, body: first } = await till.redeem(body);
  expect(status).toBe(200);
  return { id, code, body, first };
}

it("a retry with an erased reference gets the first result, and its replacement text finds it too", async () => {
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

it("the database rejects version 0.1.0's redemption or ended reference for an erased reference", async () => {
  const { id, body, first } = await redeem();
  const { organizationId } = partner;
  const other = await issue();
  const reference = [[organizationId], [body.externalRef]];
  const redeemAgain = async (on: Pick<pg.Pool, "query">) => {
    const [ids, keyIds, attempts, codes] = [[other.id], ["key_old"], ["old"], ["OLD"]];
    const at = await databaseTime(db);
    return on.query(OF_0_1_0.redeem, [at, ids, [organizationId], keyIds, attempts, [null], codes, [body.externalRef]]);
  };
  const end = (on: Pick<pg.Pool, "query">) => on.query(OF_0_1_0.end, reference);
  const refusalOf = (call: Promise<unknown>) => call.catch(({ code, message }) => [code, message]);
  const waiting = await besideTransaction(db, async (outside) => {
    await outside.query("SELECT pg_advisory_xact_lock(hashtext($1), hashtext($2))", [organizationId, body.externalRef]);
    const ending = refusalOf(end(db));
    await untilWaiting(db, 1);
    await appendEvent(outside, id, "voucher.instance.erased", { erasedSequences: [2] });
    expect(await eraseEvents(outside, [{ voucherId: id, sequence: 3 }])).toMatchObject({ events: 1 });
    const redeeming = refusalOf(redeemAgain(db));
    await untilWaiting(db, 2);
    await outside.query("COMMIT");
    return Promise.all([ending, redeeming]);
  });
  const refused = ["VS001", "the reference was redeemed before, and erased since"];
  expect(waiting).toEqual([refused, refused]);
  expect((await db.query(OF_0_1_0.find, reference)).rowCount).toBe(0);
  for (const call of [redeemAgain, end]) expect(await refusalOf(call(db))).toEqual(refused);
  expect(await till.redemption(body.externalRef)).toMatchObject({
    status: 200,
    body: { redeemCode: first.redeemCode },
  });
  expect(await till.redeem(body)).toMatchObject({ status: 200, body: { ...first, alreadyConfirmed: true } });
});

it("a reference that an old release redeemed again after an erasure gets the second redemption's result", async () => {
  const { code, body } = await redeem();
  await erase(ofOrder(body.externalRef));
  const again = await redeem();
  await bypassTriggers(db, "UPDATE redemptions SET external_ref = $1 WHERE external_ref = $2", [
    body.externalRef,
    again.body.externalRef,
  ]);
  const repeated = { ...again.first, alreadyConfirmed: true };
  expect(await till.redemption(body.externalRef)).toMatchObject({ status: 200, body: repeated });
  for (const { code: given, otherVoucher } of [{ code, otherVoucher: true }, { code: again.code }]) {
    const retried = await till.redeem({ ...body, code: given });
    expect(retried).toMatchObject({ status: 200, body: { ...repeated, ...(otherVoucher && { otherVoucher }) } });
  }
  expect((await till.redeem({ ...body, code: (await issue()).code })).body).toMatchObject(repeated);
});

it("an erased event keeps its hashes and names the erasing event, and the chain stays intact", async () => {
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

it("after a user's erasure, a repeated claim or purchase finds the first, but no row names the user", async () => {
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

it("erasing a referrer erases events of claims by the referrer's links, and users keep their vouchers", async () => {
  const offer = await makeOffer(db, 2);
  const { code, referrerId } = await makeReferral(db, offer);
  const user = await as();
  const first = await user.claimByLink(code);
  expect(await erase({ by: "user", userId: referrerId })).toMatchObject({ vouchers: 1, events: 1 });
  expect(await textsWith(referrerId)).toEqual([]);
  expect((await user.claimProduct(offer.productId)).body.voucher.id).toBe(first.body.voucher.id);
});

it("an erasure does not wait for a locked voucher that has no text to erase", async () => {
  const offer = await makeOffer(db, 1);
  const userId = newUser("Ms. Gold");
  const { voucher } = (await (await as(userId)).claimProduct(offer.productId)).body;
  await voidById(provisioning(db), voucher.id, null);
  await erase({ by: "user", userId });
  const again = besideTransaction(db, async (outside) => {
    await lockRows(outside, [voucher.id]);
    return erasePerson({ ...provisioning(db), lockWaitMs: 100 }, { by: "user", userId }, null);
  });
  expect(await again).toEqual(NOTHING);
});

it("erasing a voucher erases the reason of its expiry in the history and in the audit trail", async () => {
  const { id, code } = await issue();
  const reason = "asked by Mrs. Smith";
  const audited = auditedCommand("voucher expire", { id, reason });
  await withAuditEntry({ ...provisioning(db), audited }, { type: "VoucherInstance", id }, (tx) =>
    appendEvent(tx, id, "voucher.instance.expired", { reason }),
  );
  expect(await erase({ by: "voucher", voucherId: id })).toMatchObject({ vouchers: 1, events: 1 });
  expect((await till.events(code)).body.events[1]).toMatchObject({ code: "VCH006", payload: null, erasedBy: 3 });
  expect(await tablesWith(db, reason)).toEqual([]);
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

/** Makes a voucher with a released reservation, whose reason can be erased before any redemption. */
async function released() {
  const voucher = await issue();
  const { body } = await till.reserve(voucher.code);
  await till.release(body.ticket, "Ms. Brown left");
  return voucher;
}

it("an erasure waits for a running redeem and erases its texts; the redeem's retry gets its result", async () => {
  const { id, code } = await released();
  const body = { code, externalRef: "Ms. Brown 1", note: "a note about Ms. Brown" };
  const [redeemed, erased] = await besideTransaction(db, async (outside) => {
    await lockRows(outside, [id]);
    const redeeming = till.redeem(body);
    await untilWaiting(db, 1, "worker");
    const erasing = erase({ by: "voucher", voucherId: id });
    await untilWaiting(db, 2);
    await outside.query("ROLLBACK");
    return Promise.all([redeeming, erasing]);
  });
  expect([redeemed.status, erased]).toEqual([200, { vouchers: 1, events: 1, references: 2 }]);
  expect(await textsWith("Brown")).toEqual([]);
  expect(await till.redeem({ ...body, code: (await issue()).code })).toMatchObject({
    status: 200,
    body: { redeemCode: redeemed.body.redeemCode, alreadyConfirmed: true, otherVoucher: true },
  });
});

it("a redemption that waited for an erasure keeps its texts until the next erasure", async () => {
  const { id, code } = await released();
  const [erased, redeemed] = await besideTransaction(db, async (outside) => {
    await lockRows(outside, [id]);
    const erasing = erase({ by: "voucher", voucherId: id });
    await untilWaiting(db, 1);
    const redeeming = till.redeem({ code, externalRef: "Ms. Brown 2" });
    await untilWaiting(db, 1, "worker");
    await outside.query("ROLLBACK");
    return Promise.all([erasing, redeeming]);
  });
  expect([erased, redeemed.status]).toEqual([{ vouchers: 1, events: 0, references: 1 }, 200]);
  expect(await erase({ by: "voucher", voucherId: id })).toEqual({ vouchers: 1, events: 1, references: 1 });
  expect(await textsWith("Brown")).toEqual([]);
  expect(await verifyOneChain({ pool: db }, id)).toMatchObject({ broken: [], erased: 1 });
});

/** Ways for a user to get an offer's voucher: the call, and the statement that records the same claim or purchase. */
const ACQUISITIONS = [
  {
    kind: "claim",
    take: async (userId: string, offer: Offer) => (await as(userId)).claimProduct(offer.productId),
    event: "voucher.instance.claimed",
    table: "claims",
    insert:
      "INSERT INTO claims (user_id, product_id, voucher_id) SELECT $1::text, $2::text, $4::text WHERE $3::text <> ''",
  },
  {
    kind: "purchase",
    take: async (userId: string, offer: Offer) =>
      (await as(userId)).buyListing(offer.listingId, { paymentRef: `${userId} pays` }),
    event: "voucher.instance.bought",
    table: "purchases",
    insert: `INSERT INTO purchases (organization_id, user_id, payment_ref, voucher_id)
             SELECT $3::text, $1::text, $1::text || ' pays', $4::text WHERE $2::text <> ''`,
  },
] as const;

it.each(ACQUISITIONS)("a repeated $kind that waits for its user's erasure gets the same voucher again", async ({
  take,
  event,
  insert,
}) => {
  const { userId, id, waiting } = await until(async () => {
    const offer = await makeOffer(db, 2);
    const { id } = offer.vouchers[1] as { id: string };
    const userId = newUser("Ms. Green");
    const takeInTime = async (outside: pg.PoolClient) => {
      await outside.query("SELECT pg_advisory_xact_lock(1701995891, hashtext($1))", [userId]);
      const waiting = take(userId, offer);
      // The call waits for the user's lock, and has found no earlier claim or purchase.
      if (!(await untilWaitingOr(waiting, db, 1, "api"))) return null;
      await outside.query(insert, [userId, offer.productId, offer.organizationId, id]);
      await outside.query("UPDATE vouchers SET pickable = false WHERE id = $1", [id]);
      await appendEvent(outside, id, event);
      await appendEvent(outside, id, "voucher.instance.erased", { erasedSequences: [2] });
      expect(await eraseEvents(outside, [{ voucherId: id, sequence: 3 }])).toMatchObject({ events: 1 });
      await outside.query("COMMIT");
      return { userId, id, waiting };
    };
    return inTime(LOCK_WAIT_MS, () => besideTransaction(db, takeInTime));
  });
  const waited = await waiting;
  expect(waited).toMatchObject({ status: 200, body: { alreadyConfirmed: true, voucher: { id } } });
  expect(await textsWith(userId)).toEqual([]);
});

it.each(ACQUISITIONS)("an erasure that waits for a $kind erases its texts, even with a smaller id", async ({
  take,
  table,
}) => {
  const userId = newUser("Ms. White");
  const [later, earlier] = await offersByVoucher();
  await take(userId, later);
  const held = await holdNextInsert(db, "AFTER", table);
  const taking = take(userId, earlier);
  await held.isHeld();
  const erasing = erase({ by: "user", userId });
  await untilWaiting(db, 1);
  await held.letGo();
  const [taken, erased] = await Promise.all([taking, erasing]);
  expect([taken.status, erased]).toMatchObject([200, { vouchers: 2, events: 2 }]);
  expect(await textsWith(userId)).toEqual([]);
});

it.each(ACQUISITIONS)("a $kind that commits after an erasure keeps its texts until the next erasure", async ({
  take,
}) => {
  const { userId, taking, erased } = await until(async () => {
    const userId = newUser("Ms. Black");
    const [one, other] = await offersByVoucher();
    await take(userId, one);
    const takeDuring = async () => {
      const taking = take(userId, other);
      if (!(await untilWaitingOr(taking, db, 1, "api"))) return null;
      return { userId, taking, erased: await erase({ by: "user", userId }) };
    };
    return inTime(LOCK_WAIT_MS, () => whileLocked(db, [other.vouchers[0]?.id ?? ""], takeDuring));
  });
  const taken = await taking;
  expect([taken.body.alreadyConfirmed, erased]).toMatchObject([false, { vouchers: 1, events: 1 }]);
  expect(await erase({ by: "user", userId })).toMatchObject({ vouchers: 1, events: 1 });
  expect(await textsWith(userId)).toEqual([]);
});

it("a claim that read its referrer before the referrer's erasure records the replacement text", async () => {
  const offer = await makeOffer(db, 1);
  const { code, referrerId } = await makeReferral(db, offer);
  const userId = newUser();
  const [claimed, erased] = await besideTransaction(db, async (outside) => {
    await outside.query("SELECT pg_advisory_xact_lock(1701995891, hashtext($1))", [userId]);
    const claiming = (await as(userId)).claimByLink(code);
    // The claim waits for its user's lock, and has already read the referrer.
    await untilWaiting(db, 1, "api");
    const done = await erase({ by: "user", userId: referrerId });
    await outside.query("ROLLBACK");
    return Promise.all([claiming, done]);
  });
  expect([claimed.status, erased]).toMatchObject([200, { vouchers: 0, events: 0 }]);
  expect(await textsWith(referrerId)).toEqual([]);
  const { rows } = await db.query(
    `SELECT coalesce(payload::json->'data', data)->>'referrer' AS referrer
       FROM voucher_events WHERE event_type = 'voucher.instance.claimed' AND voucher_id = $1`,
    [claimed.body.voucher.id],
  );
  expect(rows).toEqual([{ referrer: expect.stringMatching(FORM) }]);
});

it("an erasure of a referrer waits for a running claim by the referrer's link, and erases its texts", async () => {
  const offer = await makeOffer(db, 1);
  const { code, referrerId } = await makeReferral(db, offer);
  const held = await holdNextInsert(db, "AFTER", "voucher_events");
  const claiming = (await as()).claimByLink(code);
  await held.isHeld();
  const erasing = erase({ by: "user", userId: referrerId });
  await untilWaiting(db, 1);
  await held.letGo();
  const [claimed, erased] = await Promise.all([claiming, erasing]);
  expect([claimed.status, erased]).toMatchObject([200, { vouchers: 1, events: 1 }]);
  expect(await textsWith(referrerId)).toEqual([]);
});

/** Changes by administrators that name a user. The transaction of each also writes an audit entry. */
const NAMING = {
  "an addition of a member": "INSERT INTO members (organization_id, user_id, role) VALUES ($2, $1, 'owner')",
  "an offer to a referrer": `INSERT INTO referrer_contracts (id, brand_id, user_id)
    SELECT 'ctr_' || md5($1::text), b.id, $1 FROM brands AS b WHERE b.organization_id = $2`,
};

it.each(
  Object.entries(NAMING),
)("an erasure of a user waits for %s that is not committed, and erases its texts", async (_, change) => {
  const { organizationId } = partner;
  const userId = newUser("Mr. Gray");
  const erased = await besideTransaction(db, async (outside) => {
    await outside.query(change, [userId, organizationId]);
    const erasing = erase({ by: "user", userId });
    await untilWaiting(db, 1);
    await outside.query(
      `INSERT INTO audit_entries (os_user, host, command, arguments, entity_type, entity_id, after)
       VALUES ('me', 'here', 'an act', jsonb_build_object('user', $1::text), 'Brand', 'brd_1', '{}')`,
      [userId],
    );
    await outside.query("COMMIT");
    return erasing;
  });
  expect(erased).toMatchObject({ references: 2 });
  expect(await textsWith(userId)).toEqual([]);
});

it.each([
  "reference",
  "voucher",
] as const)("an erasure by %s waits for a running first redemption, and erases its texts", async (by) => {
  const { id, code } = await issue();
  const externalRef = `Mr. Brown ${by}`;
  const held = await holdNextInsert(db, "BEFORE", "redemptions");
  const redeeming = till.redeem({ code, externalRef });
  await held.isHeld();
  const erasing = erase(by === "voucher" ? { by, voucherId: id } : ofOrder(externalRef));
  await untilWaiting(db, 1);
  await held.letGo();
  const [redeemed, erased] = await Promise.all([redeeming, erasing]);
  expect([redeemed.status, erased]).toEqual([200, { vouchers: 1, events: 1, references: 1 }]);
  expect(await textsWith(externalRef)).toEqual([]);
});

it("a redeem call redeems no second voucher if its reference is redeemed and erased during its wait", async () => {
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

it("the list of redemptions and its CSV file keep an erased redemption, with a replaced reference", async () => {
  const { body, first } = await redeem();
  await erase(ofOrder(body.externalRef));
  const listed = await until(async () => {
    const { body: list } = await till.redemptions({ limit: "1000" });
    return list.redemptions.find(({ redeemCode }: { redeemCode: string }) => redeemCode === first.redeemCode);
  });
  expect(listed.externalRef).toMatch(FORM);
  const { text } = await browse(`${api.url}/partner/redemptions`, {
    headers: { "x-api-key": keys.till.key, accept: "text/csv" },
  });
  expect(text).toContain(listed.externalRef);
  expect(text).not.toContain(body.externalRef);
});

it("a payment reference or user subject that begins like a replacement text is refused", async () => {
  const offer = await makeOffer(db, 1);
  const refused = await (await as()).buyListing(offer.listingId, { paymentRef: "erased:AAAAAAAAAAAAAAAAAAAAAA" });
  expect([refused.status, refused.body.code]).toEqual([400, "invalid_request"]);
  const user = await as("erased:AAAAAAAAAAAAAAAAAAAAAA");
  const unknown = await user.claimProduct(offer.productId);
  expect([unknown.status, unknown.body.code]).toEqual([401, "invalid_token"]);
});

it("a finished redeem job in Redis keeps no reference and no note", async () => {
  const { id } = await redeem();
  const texts = async () => {
    const keys = await servers.redis.keys(`*:redeem:${id}-*`);
    return Promise.all(keys.map((key) => servers.redis.hget(key, "data")));
  };
  await until(async () => (await texts()).every((text) => !/Smith/.test(text ?? "")));
  expect(await texts()).toEqual([expect.stringContaining(id)]);
});

it.each([
  ["reference", ["audit entry", "batch", "redemption", "release"]],
  ["voucher", ["audit reason", "payment", "purchase"]],
  ["user", ["audit entry", "claim", "contract", "form", "member", "payment", "purchase", "redemption", "release"]],
] as const)("person show by %s lists exactly the data that person erase then erases", async (by, kinds) => {
  const { persons, userId, others } = await makeTraces();
  const held = await show(persons[by]);
  expect([...new Set(held.texts.map(({ kind }) => kind))].toSorted()).toEqual(kinds);
  for (const other of others) expect(JSON.stringify(held)).not.toContain(other);
  const ofReleases = held.texts.filter(({ kind }) => kind === "release").map(({ id }) => id);
  expect(await erase(persons[by])).toEqual({
    vouchers: new Set([...held.events.map(({ voucherId }) => voucherId), ...ofReleases]).size,
    events: held.events.length,
    references: held.texts.filter(({ kind }) => kind !== "audit reason").length,
  });
  expect(await show(persons[by])).toEqual({ events: [], texts: [] });
  const { rows } = await db.query("SELECT row_to_json(a)::text AS entry FROM audit_entries AS a WHERE command = $1", [
    "person show",
  ]);
  expect(rows.filter(({ entry }) => entry.includes(userId))).toEqual([]);
  expect(rows.length).toBeGreaterThan(1);
  for (const person of Object.values(persons)) await erase(person);
  expect(await textsWith(userId)).toEqual([]);
});

it("person show prints a document for the person, and says if no data names the person", async () => {
  const { userId } = await makeTraces();
  const { run, json } = openVoucherctl(servers);
  const held = await json("person show", "--user", userId);
  expect(held).toEqual(JSON.parse(JSON.stringify(await show({ by: "user", userId }))));
  const shown = await run(["person", "show", "--user", userId]);
  const counts = `${held.events.length} events and ${held.texts.length} other texts`;
  expect(shown.stdout).toMatch(new RegExp(`^Held about user ${userId}: ${counts}\\.\n[^]+, claim: ${userId}\n`));
  const unknown = await run(["person", "show", "--user", `${userId} `]);
  expect(unknown).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^Nothing is held about user /) });
  const { rows } = await db.query(
    `SELECT entity_type, arguments, after FROM audit_entries WHERE command = 'person show' ORDER BY id DESC LIMIT 1`,
  );
  expect(rows).toEqual([
    { entity_type: "User", arguments: { by: "user" }, after: { shown: true, events: 0, texts: 0 } },
  ]);
});

it("person erase exits with 2 if no person or two persons are named", async () => {
  const { run } = openVoucherctl(servers);
  for (const persons of ["", "--user a --voucher vch_a", "--ref a", "--user a --org org_a"]) {
    const { exitCode, stderr } = await run(`person erase ${persons} --yes`);
    expect([exitCode, stderr], persons).toEqual([2, expect.stringMatching(/^Give one voucher, one user, or one ref/)]);
  }
});

it("person erase by a voucher accepts an organization only if the voucher belongs to the organization", async () => {
  const { id } = await redeem();
  const run = (org: string, user: string | null = null) =>
    eraseAct.run(provisioning(db), id, { user, ref: null, org, reason: null }, () => undefined);
  await expect(run((await makePartner(db)).organizationId)).rejects.toMatchObject({ code: "not_found" });
  await expect(run(partner.organizationId, "a user")).rejects.toMatchObject({ code: "invalid_request" });
  expect(await run(partner.organizationId)).toEqual({ vouchers: 1, events: 1, references: 1 });
});

it("the list of erasures names no person, and an immediate erasure replay finds nothing to erase", async () => {
  const { body } = await redeem();
  await erase(ofOrder(body.externalRef));
  const listed = await listErasures({ pool: db }, new Date(0));
  expect(JSON.stringify(listed)).not.toMatch(/Smith|Doe|Jones/);
  expect(listed.references.length).toBeGreaterThan(0);
  expect(await replayErasures(provisioning(db), listed)).toEqual({ ...NOTHING, otherEvents: 0 });
});

it("every interface refuses an erasure while a process of an older release is connected", async () => {
  const { id, code, body } = await redeem();
  const ctl = openVoucherctl(servers);
  const args = ["person", "erase", "--org", partner.organizationId, "--ref", body.externalRef, "--yes"];
  const refusal = /do not recognize this change: replace them, then repeat it \(pid \d+ of (api|worker).*\)/;
  const items = [{ voucherId: id, sequences: [2], erasedAt: "2099-01-01T00:00:00Z" }];
  const list = { items, users: [], usersErasedAt: {}, references: [] };
  const beside = async (name: string, work: () => Promise<unknown>) => {
    const session = await connectClient(servers.databaseUrl, name);
    await work();
    await session.end();
    await until(async () => (await findOlderSessions(db)) === null);
  };
  for (const name of ["api", "worker", `worker (schema ${SCHEMA - 1})`]) {
    await beside(name, async () => {
      await expect(erase(ofOrder(body.externalRef))).rejects.toMatchObject({ code: "wrong_status" });
      await expect(replayErasures(provisioning(db), list)).rejects.toThrow(refusal);
    });
  }
  await beside("worker", async () => {
    expect(await ctl.run(args)).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(refusal) });
  });
  expect((await till.events(code)).body.events.at(-1)).toMatchObject({ eventType: "voucher.instance.redeemed" });
  for (const name of ["api-console", "voucherctl", `api (schema ${SCHEMA + 1})`]) {
    await beside(name, async () => expect(await ctl.run(args)).toMatchObject({ exitCode: 0 }));
  }
});

/** Makes two offers of one voucher each, the greater voucher id first, because an erasure processes vouchers by id. */
async function offersByVoucher(): Promise<[Offer, Offer]> {
  const [one, other] = [await makeOffer(db, 1), await makeOffer(db, 1)];
  return (one.vouchers[0]?.id ?? "") > (other.vouchers[0]?.id ?? "") ? [one, other] : [other, one];
}

const acting = (command: string, args: object) => ({
  ...provisioning(db),
  audited: auditedCommand(command, { ...args }),
});

/** Returns what `person show` prints. The command's arguments name the person. */
function show(person: ErasedPerson): Promise<HeldAboutPerson> {
  return readPerson(acting("person show", person), person);
}

/** Writes data of each kind about a user. Some of the data names two other users. */
async function makeTraces() {
  await offerBatch(db, partner, 4);
  const { brandId, productId, organizationId } = partner;
  const userId = newUser("Ada");
  const ref = `order of ${userId}`;
  const [user, friendId] = [await as(userId), newUser("a friend")];
  const referral = await makeReferral(db, partner);
  await addMember.run(acting("member add", { user: userId }), organizationId, { user: userId, role: "employee" });
  const offered = { user: userId, endsAt: null };
  const { id: contractId } = await offerContract.run(acting("contract offer", offered), brandId, offered);
  await acceptContract.run(acting("contract accept", {}), contractId, {});
  const { code: link } = await createLink.run(provisioning(db), contractId, { product: productId });
  const friend = (await (await as(friendId)).claimByLink(link)).body.voucher;
  const claimed = (await user.claimByLink(referral.code)).body.voucher;
  const bought = (await user.buyProduct(productId, { paymentRef: `${userId} pays` })).body.voucher;
  for (const [{ code }, reason] of [
    [friend, `${friendId} left`],
    [claimed, `${userId} left`],
  ])
    await till.release((await till.reserve(code)).body.ticket, reason);
  const redeemed = await till.redeem({ code: claimed.code, externalRef: ref, note: `a note about ${userId}` });
  expect(redeemed.status).toBe(200);
  await voidById(acting("voucher void", { reason: `${userId} asked` }), bought.id, `${userId} asked`);
  const { batchId } = await issueTestBatch(db, partner, 1);
  await db.query(
    "INSERT INTO issue_references (organization_id, issue_ref, batch_id, terms) VALUES ($1, $2, $3, '{}')",
    [organizationId, ref, batchId],
  );
  await db.query(
    `INSERT INTO audit_entries (os_user, host, command, arguments, entity_type, entity_id, after)
     VALUES ('me', 'here', 'batch issue', jsonb_build_object('issueRef', $1::text), 'Batch', $2, '{}')`,
    [ref, batchId],
  );
  await db.query("INSERT INTO sent_forms VALUES (gen_random_uuid(), now(), 'contract offer', $1, 'ctr_sent')", [
    offered,
  ]);
  const persons: Record<ErasedPerson["by"], ErasedPerson> = {
    reference: ofOrder(ref),
    voucher: { by: "voucher", voucherId: bought.id },
    user: { by: "user", userId },
  };
  return { persons, userId, others: [friendId, referral.referrerId] };
}

const textsWith = (text: string) => tablesWith(db, text);

/** The statements of release 0.1.0 that find a reference, redeem under it and end it. */
const OF_0_1_0 = {
  find: `SELECT rd.organization_id AS "organizationId", rd.external_ref AS "externalRef", rd.attempt_id AS "attemptId",
       rd.redeem_code AS "redeemCode", rd.redeemed_at AS "redeemedAt"
  FROM unnest($1::text[], $2::text[]) AS w (organization_id, external_ref)
  JOIN redemptions AS rd ON rd.organization_id = ANY (ARRAY[w.organization_id]) AND rd.external_ref = w.external_ref`,
  redeem: `WITH redeemed AS (
  INSERT INTO redemptions
         (redeemed_at, voucher_id, organization_id, key_id, attempt_id, ticket, redeem_code, external_ref)
  SELECT $1::timestamptz, w.voucher_id, w.organization_id, w.key_id, w.attempt_id, w.ticket, w.redeem_code,
         w.external_ref
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
         AS w (voucher_id, organization_id, key_id, attempt_id, ticket, redeem_code, external_ref)
   ORDER BY w.organization_id COLLATE "C", w.external_ref COLLATE "C"
      ON CONFLICT (organization_id, external_ref) DO NOTHING
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($2::text[]), 'unconfirmed references') FROM redeemed`,
  end: `WITH ended AS (
  INSERT INTO reference_ends (generation, organization_id, external_ref)
  SELECT g.generation, w.organization_id, w.external_ref
    FROM unnest($1::text[], $2::text[]) AS w (organization_id, external_ref)
   CROSS JOIN reference_generation AS g WHERE g.singleton
      ON CONFLICT (organization_id, external_ref) DO UPDATE SET version = DEFAULT, generation = excluded.generation
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'ended references') FROM ended`,
};
