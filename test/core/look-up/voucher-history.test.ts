import { expect, it } from "vitest";
import { findVouchersEverywhere, readAnyVoucherHistory } from "../../../src/acts/across-organizations.ts";
import { readVoucherHistory } from "../../../src/acts/read-voucher-history.ts";
import { partnerEvent } from "../../../src/core/chain/api/events.ts";
import { foundVoucher } from "../../../src/core/look-up/api/voucher-history.ts";
import { findVouchers, type VoucherQuery } from "../../../src/core/look-up/find-vouchers.ts";
import { issueVoucher, issueVouchers } from "../../support/supply.ts";
import { useService } from "../../support/use-service.ts";

const SHARED_CODE = "SPRING-2026";

const { api, servers, partner: one, stranger: other, keys, till } = useService();

it("findVouchers finds a redeemed voucher by each identifier, in all organizations or in one", async () => {
  const voucher = await issueVoucher(servers.db, one);
  const { ticket } = (await till.reserve(voucher.code)).body;
  const { redeemCode } = (await till.redeem({ code: ticket, externalRef: "order-find" })).body;
  const [found] = await find({ by: "id", value: voucher.id });
  expect(foundVoucher.parse(found)).toStrictEqual(found);
  expect(found).toMatchObject({
    id: voucher.id,
    code: voucher.code,
    serial: 1,
    organizationId: one.organizationId,
    status: "Redeemed",
    externalRef: "order-find",
    redeemCode,
    redeemedAt: expect.any(String),
  });
  const queries: VoucherQuery[] = [
    { by: "id", value: voucher.id },
    { by: "code", value: voucher.code.toLowerCase().replaceAll("-", " ") },
    { by: "ticket", value: ticket },
    { by: "externalRef", value: " order-find " },
    { by: "redeemCode", value: redeemCode.toLowerCase().replaceAll("-", "") },
    { by: "serial", batchId: found?.batchId ?? "", serial: 1 },
  ];
  for (const query of queries) {
    expect(await find(query), query.by).toEqual([found]);
    expect(await find(query, one.organizationId), query.by).toEqual([found]);
    expect(await find(query, other.organizationId), query.by).toEqual([]);
  }
});

const history = (idCodeOrTicket: string, organizationId: string | null = null) =>
  organizationId === null
    ? readAnyVoucherHistory(api.ctx, idCodeOrTicket)
    : readVoucherHistory(api.ctx, organizationId, idCodeOrTicket);

it("findVouchers finds all vouchers with one code, in all organizations or in one", async () => {
  const owners = [one, other];
  const validUntil = new Date(Date.now() - 1_000);
  for (const owner of owners) await issueVouchers(servers.db, owner, 1, { codes: [SHARED_CODE], validUntil });
  const found = await find({ by: "code", value: SHARED_CODE });
  expect(found.map((voucher) => voucher.organizationId).sort()).toEqual(owners.map((o) => o.organizationId).sort());
  expect(await find({ by: "code", value: SHARED_CODE }, other.organizationId)).toEqual([
    expect.objectContaining({ organizationId: other.organizationId, status: "Expired", externalRef: null }),
  ]);
  await expect(history(SHARED_CODE)).rejects.toThrow(/Several organizations.*org_/);
  expect((await history(SHARED_CODE, other.organizationId)).voucher.organizationId).toBe(other.organizationId);
});

it("findVouchers finds nothing by malformed identifiers", async () => {
  const values = ["", "\0", "vch_\0", "é", "%", "rsv_x", "x".repeat(1_000)];
  for (const by of ["id", "code", "ticket", "externalRef", "redeemCode"] as const) {
    for (const value of values) expect(await find({ by, value }), `${by} ${JSON.stringify(value)}`).toEqual([]);
  }
});

it("readVoucherHistory returns reservations, events with their seals, and the redemption", async () => {
  const voucher = await issueVoucher(servers.db, one);
  const first = (await till.reserve(voucher.code)).body;
  await till.release(first.ticket, "basket emptied");
  const second = (await till.reserve(voucher.code)).body;
  // The second reservation's time passes, but no process records that it has expired.
  await servers.db.query(
    `UPDATE reservations
        SET started_at = now() - interval '2 minutes', expires_at = date_trunc('second', now()) - interval '1 minute'
      WHERE ticket = $1`,
    [second.ticket],
  );
  const unrecorded = await history(voucher.id);
  expect(unrecorded.reservations.find(({ ticket }) => ticket === second.ticket)).toMatchObject({
    state: "Expired",
    endedAt: unrecorded.reservations.find(({ ticket }) => ticket === second.ticket)?.expiresAt,
  });
  const third = (await till.reserve(voucher.code)).body;
  const redeemed = await till.redeem({ code: voucher.code, externalRef: "order-life" });
  expect(redeemed.status).toBe(200);

  const complete = await history(voucher.code);
  const [startedAt, expiresAt, endedAt] = Array(3).fill(expect.any(String));
  const reserved = { keyId: keys.till.id, keyLabel: null, startedAt, expiresAt, endedAt };
  expect(complete).toStrictEqual({
    voucher: { ...foundVoucher.parse(complete.voucher), verifyUrl: redeemed.body.verifyUrl },
    events: complete.events.map((event) => partnerEvent.parse(event)),
    reservations: [
      { ...reserved, ticket: second.ticket, state: "Expired", endReason: null },
      { ...reserved, ticket: first.ticket, state: "Released", endReason: "basket emptied" },
      { ...reserved, ticket: third.ticket, state: "Consumed", endReason: null },
    ],
    redemption: {
      externalRef: "order-life",
      redeemCode: redeemed.body.redeemCode,
      redeemedAt: complete.voucher.redeemedAt,
      keyId: keys.till.id,
      keyLabel: null,
      ticket: third.ticket,
      attemptId: expect.any(String),
    },
  });
  expect(complete.voucher).toMatchObject({ id: voucher.id, status: "Redeemed" });
  expect(complete.events.map((event) => [event.sequence, event.eventType, event.sealStatus])).toEqual([
    [1, "voucher.instance.issued", "Sealed"],
    [2, "voucher.instance.redeemed", "Sealed"],
  ]);
  for (const name of [voucher.id, third.ticket, first.ticket]) expect(await history(name)).toEqual(complete);
});

it("readVoucherHistory fails with voucher_not_found for an unknown or another organization's voucher", async () => {
  const { id } = await issueVoucher(servers.db, one);
  for (const [name, organizationId] of [
    ["vch_unknown", null],
    ["7Q4K-9MZX-2HTB-W8RC", null],
    ["rsv_unknown", null],
    [id, other.organizationId],
  ] as const) {
    await expect(history(name, organizationId)).rejects.toMatchObject({ code: "voucher_not_found" });
  }
});

const find = (query: VoucherQuery, organizationId: string | null = null) =>
  organizationId === null ? findVouchersEverywhere(api.ctx, query) : findVouchers(api.ctx, organizationId, query);
