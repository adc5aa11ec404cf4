import { expect, it } from "vitest";
import { lockVoucher } from "../../../src/core/voucher/db/vouchers.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { send } from "../../support/client.ts";
import { besideTransaction } from "../../support/outside-transaction.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { voidVoucher } from "../../support/void-voucher.ts";

// Reservations of the second API end after one second.
const service = useService({ apis: [{}, { RESERVATION_SECONDS: "1" }] });
const { api, servers, partner, keys, foreign, issue, rival: till, till: shop } = service;
const [, hasty] = service.tills;

const post = (body: unknown) => send("POST", `${api.url}/partner/vouchers/release`, { key: keys.rival.key, body });

it("release ends a live reservation and deletes its lease, and keeps later reservations", async () => {
  const { code, id } = await issue();
  const { ticket, expiresAt } = await reserve(code);
  const tables = ["vouchers", "voucher_events", "redemptions"] as const;
  const before = await dumpRows(servers.db, tables);
  const { status, body } = await shop.release(ticket);
  expect(await dumpRows(servers.db, tables)).toEqual(before);
  expect({ status, body }).toEqual({ status: 200, body: { released: true } });
  const reservation = await readReservation(ticket);
  expect(reservation).toMatchObject({ state: "Released", end_reason: null, voucher_id: id });
  expect(reservation.ended_at.getTime()).toBeGreaterThanOrEqual(reservation.started_at.getTime());
  expect(reservation.expires_at.toISOString()).toBe(expiresAt);
  expect(await servers.redis.exists(servers.leaseKey(id))).toBe(0);
  expect((await shop.lookUp(code)).body.reservation).toBeNull();
  const later = (await till.reserve(code)).body;
  expect((await shop.release(ticket)).body.released).toBe(false);
  expect(await readReservation(later.ticket)).toMatchObject({ state: "Live" });
  expect(await servers.redis.get(servers.leaseKey(id))).toContain(later.ticket);
});

it("release gives the same answer for every ticket that is not live, and changes nothing", async () => {
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
    `${liveTicket}!`,
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
  expect(JSON.parse([...answers][0] ?? "")).toEqual({ released: false, reason: expect.stringMatching(/^[A-Z].+\.$/) });
  expect(await dumpRows(servers.db)).toEqual(before);
  expect((await shop.lookUp(theirs?.code ?? "")).body.reservation).toMatchObject({ ticket: liveTicket });
});

it("release of a ticket that is not live answers at once while the voucher is locked", async () => {
  const { id, code } = await issue();
  const { ticket } = await reserve(code);
  await shop.release(ticket);
  const { status, body } = await besideTransaction(servers.db, async (outside) => {
    await lockVoucher(outside, id);
    return shop.release(ticket);
  });
  expect([status, body.released]).toEqual([200, false]);
});

it("release accepts a ticket that was scanned in capitals and with a line feed", async () => {
  const { ticket } = await reserve((await issue()).code);
  expect((await shop.release(`${ticket.toUpperCase()}\n`)).body).toEqual({ released: true });
});

it("release by any key of the organization stores a reason of up to 200 code points", async () => {
  for (const reason of ["😀".repeat(200), "", "two\nlines\t!", null, undefined]) {
    const { ticket } = await reserve((await issue()).code);
    expect((await post({ ticket, reason })).body).toEqual({ released: true });
    expect(await readReservation(ticket)).toMatchObject({ state: "Released", end_reason: reason ?? null });
  }
});

async function reserve(code: string): Promise<{ ticket: string; token: string; expiresAt: string }> {
  const { status, body } = await shop.reserve(code);
  expect(status).toBe(200);
  return body;
}

async function readReservation(ticket: string) {
  const { rows } = await servers.db.query("SELECT * FROM reservations WHERE ticket = $1", [ticket]);
  return rows[0];
}
