import { describe, expect, it } from "vitest";
import { newId } from "../../src/domain/ids.ts";
import { voidVoucher } from "../../src/services/admin/void-voucher.ts";
import { send } from "../support/client.ts";
import { dumpRows } from "../support/row-dump.ts";
import { provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

// Reservations of the second API end after one second.
const service = useService({ apis: [{}, { RESERVATION_SECONDS: "1" }] });
const { api, servers, partner, keys, foreign, issue, rival: till, till: shop } = service;
const [, hasty] = service.tills;

async function reserve(code: string): Promise<{ ticket: string; token: string; expiresAt: string }> {
  const { status, body } = await shop.reserve(code);
  expect(status).toBe(200);
  return body;
}

async function readReservation(ticket: string) {
  const { rows } = await servers.db.query("SELECT * FROM reservations WHERE ticket = $1", [ticket]);
  return rows[0];
}

const post = (body: unknown) => send("POST", `${api.url}/partner/vouchers/release`, { key: keys.till.key, body });

describe("POST /partner/vouchers/release", () => {
  it("ends a live reservation, answers only released true, and frees the voucher for every key", async () => {
    const { code, id } = await issue();
    const { ticket, expiresAt } = await reserve(code);
    const { status, body } = await shop.release(ticket);
    expect({ status, body }).toEqual({ status: 200, body: { released: true } });
    const reservation = await readReservation(ticket);
    expect(reservation).toMatchObject({ state: "Released", end_reason: null, voucher_id: id });
    expect(reservation.ended_at.getTime()).toBeGreaterThanOrEqual(reservation.started_at.getTime());
    expect(reservation.expires_at.toISOString()).toBe(expiresAt);
    expect((await shop.lookUp(code)).body.reservation).toBeNull();
    expect((await till.reserve(code)).status).toBe(200);
  });

  it("changes neither the voucher nor its chain", async () => {
    const { code } = await issue();
    const { ticket } = await reserve(code);
    const before = await dumpRows(servers.db, ["vouchers", "voucher_events", "redemptions"]);
    expect((await shop.release(ticket)).body).toEqual({ released: true });
    expect(await dumpRows(servers.db, ["vouchers", "voucher_events", "redemptions"])).toEqual(before);
  });

  it("answers released false with a reason in words when repeated, and changes nothing", async () => {
    const { ticket } = await reserve((await issue()).code);
    await shop.release(ticket, "first");
    const before = await dumpRows(servers.db);
    const { status, body } = await shop.release(ticket, "second");
    expect({ status, body }).toEqual({ status: 200, body: { released: false, reason: expect.any(String) } });
    expect(body.reason).toMatch(/^[A-Z].+\.$/);
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it("answers the same to every ticket that is not live, known or not, and changes nothing", async () => {
    const [released, consumed, overdue, voided, theirs, active] = await Promise.all(
      Array.from({ length: 6 }, () => issue()),
    );
    const releasedTicket = (await reserve(released?.code ?? "")).ticket;
    await shop.release(releasedTicket);
    const consumedTicket = (await reserve(consumed?.code ?? "")).ticket;
    expect((await shop.redeem({ ticket: consumedTicket, externalRef: "release-consumed" })).status).toBe(200);
    const voidedTicket = (await reserve(voided?.code ?? "")).ticket;
    await voidVoucher(provisioning(servers.db), partner.organizationId, voided?.code ?? "", null);
    const liveTicket = (await reserve(theirs?.code ?? "")).ticket;
    const overdueTicket = (await hasty.reserve(overdue?.code ?? "")).body.ticket;
    await until(async () => (await shop.lookUp(overdueTicket)).body.reservation === null);

    const before = await dumpRows(servers.db);
    const answers = new Set<string>();
    for (const ticket of [
      releasedTicket,
      consumedTicket,
      voidedTicket,
      overdueTicket,
      newId("rsv"),
      "rsv_",
      `rsv_${"x".repeat(252)}`,
      active?.code,
      theirs?.code,
      active?.id,
      liveTicket.toUpperCase(),
      ` ${liveTicket}`,
      "'; DROP TABLE reservations; --",
    ]) {
      const { status, body } = await shop.release(ticket ?? "");
      expect(status).toBe(200);
      answers.add(JSON.stringify(body));
    }
    for (const ticket of [liveTicket, releasedTicket, consumedTicket]) {
      const { status, body } = await foreign.release(ticket);
      expect(status).toBe(200);
      answers.add(JSON.stringify(body));
    }
    expect(answers.size).toBe(1);
    expect(JSON.parse([...answers][0] ?? "")).toEqual({ released: false, reason: expect.any(String) });
    expect(await dumpRows(servers.db)).toEqual(before);
    expect((await shop.lookUp(theirs?.code ?? "")).body.reservation).toMatchObject({ ticket: liveTicket });
  });

  it("lets another key of the same organization release by the ticket", async () => {
    const { code } = await issue();
    const { ticket } = await reserve(code);
    const { status, body } = await till.release(ticket, "the customer left");
    expect({ status, body }).toEqual({ status: 200, body: { released: true } });
    expect(await readReservation(ticket)).toMatchObject({ state: "Released", end_reason: "the customer left" });
  });

  it("never lets a former holder release a later reservation", async () => {
    const { code } = await issue();
    const first = await reserve(code);
    await shop.release(first.ticket);
    const second = (await till.reserve(code)).body;
    expect((await shop.release(first.ticket)).body.released).toBe(false);
    expect(await readReservation(second.ticket)).toMatchObject({ state: "Live" });
  });
});

describe("the reason given to POST /partner/vouchers/release", () => {
  it.each([
    ["200 characters", "r".repeat(200)],
    ["200 code points outside the basic plane", "😀".repeat(200)],
    ["an empty string", ""],
    ["line breaks and tabs", "two\nlines\t!"],
  ])("is stored with the reservation: %s", async (_what, reason) => {
    const { ticket } = await reserve((await issue()).code);
    expect((await shop.release(ticket, reason)).body).toEqual({ released: true });
    expect((await readReservation(ticket)).end_reason).toBe(reason);
  });

  it("may be null or absent", async () => {
    for (const body of [{ reason: null }, {}]) {
      const { ticket } = await reserve((await issue()).code);
      expect((await post({ ...body, ticket })).body).toEqual({ released: true });
      expect((await readReservation(ticket)).end_reason).toBeNull();
    }
  });

  it("is checked even when there is nothing to release", async () => {
    expect((await post({ ticket: "nothing", reason: "r".repeat(201) })).status).toBe(400);
  });
});

describe("the ticket given to POST /partner/vouchers/release", () => {
  it("is refused with 400 naming it when it is empty", async () => {
    const { status, body } = await post({ ticket: "" });
    expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_request" });
    expect(body.error).toContain("ticket");
  });

  it("is not taken from a field named code", async () => {
    const { ticket } = await reserve((await issue()).code);
    const { status, body } = await post({ code: ticket });
    expect({ status, error: body.error }).toEqual({ status: 400, error: expect.stringContaining("ticket") });
    expect(await readReservation(ticket)).toMatchObject({ state: "Live" });
  });
});

describe("the lease after POST /partner/vouchers/release", () => {
  it("is gone from Redis when the answer arrives", async () => {
    const { id, code } = await issue();
    const { ticket } = await reserve(code);
    expect(await servers.redis.exists(servers.leaseKey(id))).toBe(1);
    await shop.release(ticket);
    expect(await servers.redis.exists(servers.leaseKey(id))).toBe(0);
  });

  it("stays as it is when it belongs to another ticket", async () => {
    const { id, code } = await issue();
    const { ticket } = await reserve(code);
    await servers.redis.hset(servers.leaseKey(id), { ticket: newId("rsv"), key: "key_of_another_partner" });
    const before = {
      lease: await servers.redis.hgetall(servers.leaseKey(id)),
      endsAt: await servers.redis.pexpiretime(servers.leaseKey(id)),
    };
    expect((await shop.release(ticket)).body).toEqual({ released: true });
    expect({
      lease: await servers.redis.hgetall(servers.leaseKey(id)),
      endsAt: await servers.redis.pexpiretime(servers.leaseKey(id)),
    }).toEqual(before);
  });

  it("of the live reservation stays when an older ticket of the voucher is released again", async () => {
    const { id, code } = await issue();
    const first = await reserve(code);
    await shop.release(first.ticket);
    const second = await reserve(code);
    expect((await shop.release(first.ticket)).body.released).toBe(false);
    expect(await servers.redis.hget(servers.leaseKey(id), "ticket")).toBe(second.ticket);
  });

  it("need not exist: a reservation whose lease is lost can be released", async () => {
    const { id, code } = await issue();
    const { ticket } = await reserve(code);
    await servers.redis.del(servers.leaseKey(id));
    expect((await shop.release(ticket)).body).toEqual({ released: true });
    expect(await readReservation(ticket)).toMatchObject({ state: "Released" });
  });
});
