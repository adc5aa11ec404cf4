import { createHash } from "node:crypto";
import { beforeAll, expect, it, vi } from "vitest";
import { erasePerson } from "../../../src/acts/erase-person.ts";
import { appendEvent } from "../../support/append-event.ts";
import { type PartnerClient, partnerClient, send } from "../../support/client.ts";
import { besideTransaction, bypassTriggers } from "../../support/outside-transaction.ts";
import { appendPending } from "../../support/pending-events.ts";
import { sealVoucher } from "../../support/seal-voucher.ts";
import { issueVouchers, makeKey, makePartner, provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const service = useService({ apis: [{}, {}] });
const { api, servers, partner, stranger, till, tills, foreign, issue, keys } = service;

beforeAll(async () => {
  await issueVouchers(servers.db, partner, 3);
  await issueVouchers(servers.db, stranger, 2);
});

it("the feed has an organization's events, with payloads only of vouchers that cannot be redeemed again", async () => {
  const { code, id } = await issue();
  expect((await till.redeem({ code, externalRef: "every field" })).status).toBe(200);
  const events = await untilListed(till, "", id, 2);
  const history = (await till.events(code)).body.events;
  const [issued, redeemed] = events.filter(({ entityId }) => entityId === id);
  expect(issued).toStrictEqual({ ...history[0], entityId: id, payload: null, cursor: CURSOR });
  expect(redeemed).toStrictEqual({ ...history[1], entityId: id, cursor: CURSOR });
  expect(
    createHash("sha256")
      .update(redeemed?.payload ?? "")
      .digest("hex"),
  ).toBe(redeemed?.recordHash);
  expect(events.filter(({ payload }) => payload !== null).map(({ eventType }) => eventType)).toEqual([
    "voucher.instance.redeemed",
  ]);
  expect((await readAll(foreign)).events).toHaveLength(2);
  // A key that may list codes gets all payloads.
  const { key } = await makeKey(servers.db, partner.organizationId, { scopes: ["voucher.read", "voucher.issue"] });
  const all = (await readAll(partnerClient(api.url, key))).events;
  expect(all.find(({ entityId }) => entityId === id)).toStrictEqual({ ...history[0], entityId: id, cursor: CURSOR });
});

it("the feed of events has each event once with any page size, and only new events after its cursor", async () => {
  const all = await readAll(till);
  for (const [at, { cursor }] of all.events.entries())
    expect((await till.feed({ after: cursor, limit: "1" })).body.events).toEqual(all.events.slice(at + 1, at + 2));
  for (const limit of ["1", "2", "5"]) expect((await readAll(till, "", { limit })).events).toEqual(all.events);
  const [voucher] = await issueVouchers(servers.db, partner, 1);
  const after = await untilListed(till, all.cursor, voucher?.id ?? "", 1);
  expect(after.map(({ entityId }) => entityId)).toEqual([voucher?.id]);
});

it("the feed of events does not skip an event that commits after an event with a later position", async () => {
  const [slow, quick] = await issueVouchers(servers.db, partner, 2);
  await untilListed(till, "", quick?.id ?? "", 1);
  const { cursor } = await readAll(till);
  const { completeUntil } = (await till.feed({ after: cursor })).body;
  await besideTransaction(servers.db, async (outside) => {
    await appendEvent(outside, slow?.id ?? "", "voucher.instance.extended");
    const redeemed = await till.redeem({ code: quick?.code ?? "", externalRef: "quick" });
    expect(redeemed.status).toBe(200);
    // Reads three times, with the feed's minimum interval between, so that both processes have read the feed again.
    for (let turn = 0; turn < 3; turn++) {
      for (const each of tills) {
        const { body } = await each.feed({ after: cursor });
        expect(body.events).toEqual([]);
        expect(Date.parse(body.completeUntil)).toBeLessThanOrEqual(Date.parse(redeemed.body.redeemedAt));
      }
      await until(async () => (await servers.db.query(MOVED)).rows[0]?.moved);
    }
    await outside.query("COMMIT");
  });
  await untilListed(till, cursor, slow?.id ?? "", 1);
  const { events } = await readAll(till, cursor);
  expect(events.map(({ entityId }) => entityId)).toEqual([slow?.id, quick?.id]);
  await until(async () => (await till.feed({ after: cursor })).body.completeUntil > completeUntil);
});

it("the feed's completeUntil is up to date in the first response after an hour without readers", async () => {
  await untilQuiet();
  const hourAgo = new Date(Date.now() - 3_600_000);
  await bypassTriggers(
    servers.db,
    "UPDATE event_feed SET complete_until = $1, next_complete_until = $1, next_at = $1, writers = '{}'",
    [hourAgo],
  );
  const rested = await service.startApi();
  const { body } = await partnerClient(rested.url, keys.till.key).feed({ after: "now" });
  expect(Date.parse(body.completeUntil)).toBeGreaterThan(hourAgo.getTime() + 3_000_000);
});

it("the feed's completeUntil does not pass the time of an unsealed event", async () => {
  const { id } = await issue();
  const occurredAt = new Date();
  await appendPending(servers.db, id, 1, occurredAt);
  await until(async () => {
    const { rows } = await servers.db.query("SELECT next_at > $1 AS later FROM event_feed", [occurredAt]);
    await till.feed();
    return rows[0]?.later;
  });
  for (let turn = 0; turn < 2; turn++) {
    await until(async () => (await servers.db.query(MOVED)).rows[0]?.moved);
    expect(Date.parse((await till.feed()).body.completeUntil)).toBeLessThanOrEqual(occurredAt.getTime());
  }
  expect(await sealVoucher({ pool: servers.db }, id)).toBe(1);
  const events = await untilListed(till, "", id, 2);
  expect(events.at(-1)).toMatchObject({ entityId: id, eventType: "voucher.instance.claimed", sealStatus: "Sealed" });
  await until(async () => Date.parse((await till.feed()).body.completeUntil) > occurredAt.getTime());
});

it("an erased event keeps its position in the feed, but loses its payload", async () => {
  const { code, id } = await issue();
  expect((await till.redeem({ code, externalRef: "to be erased" })).status).toBe(200);
  const before = await untilListed(till, "", id, 2);
  const { organizationId } = partner;
  await erasePerson(provisioning(servers.db), { by: "reference", organizationId, externalRef: "to be erased" }, null);
  const after = await untilListed(till, "", id, 3);
  const at = before.findIndex(({ entityId, sequence }) => entityId === id && sequence === 2);
  expect(after[at]).toEqual({ ...before[at], payload: null, erasedBy: 3 });
  expect(after.slice(0, at)).toEqual(before.slice(0, at));
});

it("the parameter `types` filters the feed by event type, and after=now returns only later events", async () => {
  const { body } = await till.feed({ after: "now", types: "voucher.instance.redeemed" });
  expect(body.events).toEqual([]);
  const { code, id } = await issue();
  await till.redeem({ code, externalRef: "of a type" });
  await untilListed(till, "", id, 2);
  const types = "voucher.instance.redeemed,voucher.instance.voided";
  const { events } = await readAll(till, body.nextCursor, { types });
  expect(events.map(({ entityId, eventType }) => [entityId, eventType])).toEqual([[id, "voucher.instance.redeemed"]]);
  expect((await readAll(till, body.nextCursor)).events).toHaveLength(2);
});

it("feed calls that wait for events hold no connection, and return on an event of their organization", async () => {
  await untilQuiet();
  const { cursor } = await readAll(till);
  const { cursor: theirs } = await readAll(foreign);
  let other = "waits";
  const waiting = Array.from({ length: 20 }, () => till.feed({ after: cursor, wait: "20" }));
  const foreigner = foreign.feed({ after: theirs, wait: "4" }).then(({ body }) => {
    other = "ended";
    return body;
  });
  await until(() => api.ctx.eventFeed.waiting === 21);
  await until(() => api.ctx.pool.idleCount === api.ctx.pool.totalCount);
  const { code, id } = await issue();
  await till.redeem({ code, externalRef: "woken" });
  for (const { body } of await Promise.all(waiting)) expect(body.events[0]).toMatchObject({ entityId: id });
  expect(other).toBe("waits");
  expect((await foreigner).events).toEqual([]);
});

it("a call that waits for new events ends when the process closes or its waiting time is over", async () => {
  const ending = await service.startApi();
  const { cursor } = await readAll(till);
  const client = partnerClient(ending.url, keys.till.key);
  const started = vi.spyOn(ending.ctx.eventFeed, "waitForEvents");
  const waiting = client.feed({ after: cursor, wait: "20" });
  await until(() => started.mock.calls.length === 1);
  const startedAt = performance.now();
  await ending.close();
  const { status, body } = await waiting;
  expect([status, body.events]).toEqual([200, []]);
  expect(performance.now() - startedAt).toBeLessThan(15_000);
  expect((await till.feed({ after: cursor, wait: "1" })).body.events).toEqual([]);
});

it("a sandbox has a feed of events, and its responses are marked as sandbox", async () => {
  const sandbox = await makePartner(servers.db, { sandbox: true });
  const [voucher] = await issueVouchers(servers.db, sandbox, 1);
  const { key } = await makeKey(servers.db, sandbox.organizationId);
  const client = partnerClient(api.url, key);
  await untilListed(client, "", voucher?.id ?? "", 1);
  expect((await client.feed()).body).toMatchObject({ sandbox: true, events: [{ entityId: voucher?.id }] });
});

it("the feed refuses the cursor of an event that a restore lost, even if another event has its position", async () => {
  const { code, id } = await issue();
  await till.redeem({ code, externalRef: "lost" });
  await untilListed(till, "", id, 2);
  const { cursor } = await readAll(till);
  const lost =
    "after names an event that the database no longer has, as after a restore: read again from the beginning.";
  const { rows } = await servers.db.query(
    "SELECT log_slot AS slot FROM voucher_events WHERE voucher_id = $1 ORDER BY sequence",
    [id],
  );
  const move = (sequence: number, slot: string | null) =>
    bypassTriggers(servers.db, "UPDATE voucher_events SET log_slot = $3 WHERE voucher_id = $1 AND sequence = $2", [
      ...[id, sequence, slot],
    ]);
  for (const taken of [false, true]) {
    await move(2, null);
    if (taken) await move(1, rows[1]?.slot);
    const { status, body } = await till.feed({ after: cursor });
    expect([status, body.error]).toEqual([400, lost]);
  }
  await move(1, rows[0]?.slot);
  await move(2, rows[1]?.slot);
});

it.each([
  ["?after=nothing", "after is not a cursor of this list."],
  [`?after=${"x".repeat(600)}`, "after is not a cursor of this list."],
  ["?after=now&after=now", "after must be one value."],
  ["?limit=1001", "limit must be a whole number from 1 to 1000."],
  ["?wait=21", "wait must be a whole number from 0 to 20."],
  ["?wait=-1&limit=x", /^limit must be .*\. wait must be a whole number from 0 to 20\.$/],
  [
    "?types=voucher.instance.redeemed,other",
    /^types must be some of voucher\.instance\.issued, .*, separated by commas\.$/,
  ],
  ["?types=", /^types must be some of /],
])("the feed refuses %s with a message that names the field", async (query, sentence) => {
  const { status, body } = await send("GET", `${api.url}/partner/events${query}`, { key: keys.till.key });
  expect([status, body.code]).toEqual([400, "invalid_request"]);
  expect(body.error).toEqual(typeof sentence === "string" ? sentence : expect.stringMatching(sentence));
});

it("the feed refuses another organization's cursor and another list's cursor", async () => {
  const { cursor } = await readAll(till);
  const redemptions = (await till.redemptions()).body.nextCursor;
  for (const [client, after] of [
    [foreign, cursor],
    [till, redemptions],
  ] as const)
    expect((await client.feed({ after })).body).toMatchObject({ error: "after is not a cursor of this list." });
});

/** Whether the feed's end may move again: the minimum interval since its last move has passed. */
const MOVED = "SELECT clock_timestamp() - interval '1900 milliseconds' > next_at AS moved FROM event_feed";

const CURSOR = expect.any(String);

interface Listed {
  cursor: string;
  entityId: string;
  sequence: number;
  eventType: string;
  payload: string | null;
  recordHash: string;
}

async function readAll(client: PartnerClient, after = "", query: Record<string, string> = {}) {
  const events: Listed[] = [];
  let cursor = after;
  for (;;) {
    const { status, body } = await client.feed({ ...query, ...(cursor !== "" && { after: cursor }) });
    expect(status).toBe(200);
    if (body.events.length === 0) return { events, cursor: body.nextCursor as string };
    events.push(...body.events);
    cursor = body.nextCursor;
  }
}

async function untilListed(client: PartnerClient, after: string, id: string, count: number): Promise<Listed[]> {
  return until(async () => {
    const { events } = await readAll(client, after);
    return events.filter(({ entityId }) => entityId === id).length === count ? events : null;
  });
}

/** Waits until the feed contains all events, so that no open transaction could add an earlier one. */
async function untilQuiet(): Promise<void> {
  const { rows } = await servers.db.query("SELECT last_value FROM log_batch_ids");
  await until(async () => {
    await till.feed();
    const feed = await servers.db.query("SELECT final_id FROM event_feed");
    return feed.rows[0]?.final_id === rows[0]?.last_value;
  });
}
