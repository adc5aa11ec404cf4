import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReserveResponse } from "../../src/contract/reserve.ts";
import { newId } from "../../src/domain/ids.ts";
import { Leases } from "../../src/holds/lease.ts";
import { voidVoucher } from "../../src/services/admin/void-voucher.ts";
import type { Caller } from "../../src/services/auth/caller.ts";
import { releaseReservation } from "../../src/services/partner/release-reservation.ts";
import { reserveVoucher } from "../../src/services/partner/reserve-voucher.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { makeGate } from "../support/gate.ts";
import { assertInvariants } from "../support/invariants.ts";
import { besideTransaction, untilWaiting, whileLocked } from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, type TestApi } from "../support/service.ts";
import {
  issueVoucher,
  issueVouchers,
  makeKey,
  makePartner,
  provisioning,
  type TestPartner,
} from "../support/supply.ts";

let servers: TestServers;
/** The API whose leases a test delays, and another one. */
let delayed: TestApi;
let other: TestApi;
let partner: TestPartner;
let holder: Caller;
let rival: Caller;
/** Clients of both keys at the other API. */
let holderTill: PartnerClient;
let rivalTill: PartnerClient;

beforeAll(async () => {
  servers = await openTestServers();
  [delayed, other] = await Promise.all([startApi(servers), startApi(servers)]);
  partner = await makePartner(servers.db);
  const [one, two] = await Promise.all([
    makeKey(servers.db, partner.organizationId),
    makeKey(servers.db, partner.organizationId),
  ]);
  holder = { keyId: one.id, organizationId: partner.organizationId, sandbox: false };
  rival = { keyId: two.id, organizationId: partner.organizationId, sandbox: false };
  [holderTill, rivalTill] = [partnerClient(other.url, one.key), partnerClient(other.url, two.key)];
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all([delayed.close(), other.close()]);
  await servers.close();
});

/** Runs before a lease is released, or after it is acquired. */
interface Hooks {
  beforeRelease?: () => Promise<void>;
  afterAcquire?: () => Promise<void>;
}

class HookedLeases extends Leases {
  readonly #hooks: Hooks;

  constructor(hooks: Hooks) {
    super(delayed.ctx.redis, delayed.ctx.deployment);
    this.#hooks = hooks;
  }

  override async acquire(...args: Parameters<Leases["acquire"]>): ReturnType<Leases["acquire"]> {
    const lease = await super.acquire(...args);
    await this.#hooks.afterAcquire?.();
    return lease;
  }

  override async release(...args: Parameters<Leases["release"]>): Promise<boolean> {
    await this.#hooks.beforeRelease?.();
    return super.release(...args);
  }
}

const fail = () => Promise.reject(new Error("Redis is unavailable"));

/** A voucher that the holder has reserved. */
async function makeReserved(): Promise<{ id: string; code: string; reservation: ReserveResponse }> {
  const { id, code } = await issueVoucher(servers.db, partner);
  return { id, code, reservation: await reserveVoucher(delayed.ctx, holder, code) };
}

/** Makes a voucher's lease three seconds older, so that it counts as an orphan. */
async function age(voucherId: string): Promise<void> {
  await servers.redis.hincrby(servers.leaseKey(voucherId), "start", -3_000);
}

function leaseTicket(voucherId: string): Promise<string | null> {
  return servers.redis.hget(servers.leaseKey(voucherId), "ticket");
}

describe("a lease", () => {
  it("survives the late lease release of an earlier reservation", async () => {
    const { id, code, reservation } = await makeReserved();
    const gate = makeGate();
    const leases = new HookedLeases({ beforeRelease: gate.pass });
    const released = releaseReservation({ ...delayed.ctx, leases }, holder, reservation.ticket, null);
    await gate.reached;
    await age(id);
    const later = await rivalTill.reserve(code);
    expect(later.status).toBe(200);
    gate.open();
    expect(await released).toEqual({ released: true });
    expect(await leaseTicket(id)).toBe(later.body.ticket);
  });

  it("is released when the voucher's row then refuses the reservation", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const gate = makeGate();
    const ctx = { ...delayed.ctx, leases: new HookedLeases({ afterAcquire: gate.pass }) };
    const refused = reserveVoucher(ctx, holder, code).catch((error: unknown) => error);
    await gate.reached;
    expect(await leaseTicket(id)).not.toBeNull();
    await voidVoucher(provisioning(servers.db), partner.organizationId, code, null);
    gate.open();
    expect(await refused).toMatchObject({ code: "voucher_voided" });
    expect(await leaseTicket(id)).toBeNull();
  });

  it("younger than two seconds turns another key away before its reservation is written", async () => {
    const { code } = await issueVoucher(servers.db, partner);
    const gate = makeGate();
    const ctx = { ...delayed.ctx, leases: new HookedLeases({ afterAcquire: gate.pass }) };
    const reserving = reserveVoucher(ctx, holder, code);
    await gate.reached;
    expect(await rivalTill.reserve(code)).toMatchObject({ status: 409, body: { code: "voucher_reserved" } });
    gate.open();
    expect(await reserving).toMatchObject({ ticket: expect.stringMatching(/^rsv_/) });
  });

  it("without a live reservation turns no key away once it is older than two seconds", async () => {
    const { id, code, reservation } = await makeReserved();
    await releaseReservation(
      { ...delayed.ctx, leases: new HookedLeases({ beforeRelease: fail }) },
      holder,
      reservation.ticket,
      null,
    );
    expect(await leaseTicket(id)).toBe(reservation.ticket);
    await age(id);
    const later = await rivalTill.reserve(code);
    expect(later.status).toBe(200);
    expect(await leaseTicket(id)).toBe(later.body.ticket);
  });

  it("from the future, as after the Redis host set its clock back, turns no key away without a live reservation", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const lease = { ticket: newId("rsv"), key: holder.keyId, start: Date.now() + 3_600_000 };
    await servers.redis.hset(servers.leaseKey(id), lease);
    const reply = await rivalTill.reserve(code);
    expect(reply.status).toBe(200);
    expect(await leaseTicket(id)).toBe(reply.body.ticket);
  });

  it("that was taken over leaves the first reservation in place", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const { first, second } = await whileLocked(servers.db, [id], async () => {
      const first = reserveVoucher(delayed.ctx, holder, code);
      await untilWaiting(servers.db, 1, "api");
      await age(id);
      const second = rivalTill.reserve(code);
      await untilWaiting(servers.db, 2, "api");
      return { first, second };
    });
    const { ticket } = await first;
    expect(await second).toMatchObject({ status: 409, body: { code: "voucher_reserved" } });
    expect((await readRecorded(servers.db, id)).liveTicket).toBe(ticket);
  });

  it("left by a failed release does not change the answer of the same key's next reserve", async () => {
    const { id, code, reservation } = await makeReserved();
    const leases = new HookedLeases({ beforeRelease: fail });
    expect(await releaseReservation({ ...delayed.ctx, leases }, holder, reservation.ticket, null)).toEqual({
      released: true,
    });
    const { status, body } = await holderTill.reserve(code);
    expect({ status, code: body.code }).toEqual({ status: 200, code: undefined });
    expect(body.ticket).not.toBe(reservation.ticket);
    expect((await readRecorded(servers.db, id)).liveTicket).toBe(body.ticket);
  });
});

describe("the unique live reservation of a voucher", () => {
  it("answers 409 voucher_reserved when a row was inserted without lease and row lock", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const ticket = `rsv_outside_${id}`;
    const { late } = await besideTransaction(servers.db, async (outside) => {
      await outside.query(
        `INSERT INTO reservations (started_at, expires_at, ticket, voucher_id, organization_id, key_id, state, token_secret_id)
         VALUES (clock_timestamp(), clock_timestamp() + interval '900 seconds', $1, $2, $3, $4, 'Live', 'none')`,
        [ticket, id, partner.organizationId, rival.keyId],
      );
      const late = holderTill.reserve(code);
      await untilWaiting(servers.db, 1, "api");
      await outside.query("COMMIT");
      return { late };
    });
    const { status, body } = await late;
    expect((await readRecorded(servers.db, id)).liveTicket).toBe(ticket);
    expect({ status, code: body.code }).toEqual({ status: 409, code: "voucher_reserved" });
  });

  it("fails no other reserve of the same transaction when one has a used ticket", async () => {
    const { id, reservation } = await makeReserved();
    expect(await releaseReservation(delayed.ctx, holder, reservation.ticket, null)).toEqual({ released: true });
    const others = await issueVouchers(servers.db, partner, 5);
    const open = (voucherId: string, ticket: string) =>
      delayed.ctx.reservationCommitter
        .submit({ kind: "open", ...holder, voucherId, ticket, tokenSecretId: "none", seconds: 900 })
        .catch((error: unknown) => error);
    const [, ...outcomes] = await Promise.all([
      open(id, reservation.ticket),
      ...others.map((voucher, n) => open(voucher.id, `${reservation.ticket}${n}`)),
    ]);
    expect(outcomes).toMatchObject(others.map(() => ({ kind: "opened" })));
  });
});
