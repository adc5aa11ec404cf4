import { beforeAll, expect, it } from "vitest";
import type { Caller } from "../../../src/core/keys/caller.ts";
import type { ReserveResponse } from "../../../src/core/reserve/api/reserve.ts";
import { Leases, ORPHAN_AFTER_MS, releaseLeases } from "../../../src/core/reserve/lease.ts";
import { releaseReservation } from "../../../src/core/reserve/release-reservation.ts";
import { reserveVoucher } from "../../../src/core/reserve/reserve-voucher.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { makeGate } from "../../support/gate.ts";
import { besideTransaction, untilWaiting, whileLocked } from "../../support/outside-transaction.ts";
import { readRecorded } from "../../support/recorded.ts";
import { issueVouchers, provisioning } from "../../support/supply.ts";
import { inTime, until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { voidVoucher } from "../../support/void-voucher.ts";

const service = useService({ apis: [{}, {}], workers: [] });
/** Tests delay the leases of the first API. The clients call the second one. */
const { servers, api: delayed, partner, issue } = service;
const [, holderTill] = service.tills;
const [, rivalTill] = service.rivals;
let holder: Caller;

beforeAll(() => {
  holder = { keyId: service.keys.till.id, organizationId: partner.organizationId, sandbox: false };
});

const fail = () => Promise.reject(new Error("Redis is unavailable"));

it("a delayed release of a reservation keeps the lease in Redis of a later reservation", async () => {
  const { id, code, reservation } = await makeReserved();
  const gate = makeGate();
  const leases = new HookedLeases({ beforeRelease: gate.pass });
  const released = releaseReservation({ ...delayed.ctx, leases }, holder, reservation.ticket, null);
  await gate.reached;
  await age(id);
  const later = await rivalTill.reserve(code);
  expect(later.status).toBe(200);
  gate.open();
  expect(await released).toBe(true);
  expect(await leaseTicket(id)).toBe(later.body.ticket);
});

it("a lease in Redis is deleted if Postgres then refuses the reservation", async () => {
  const { id, code } = await issue();
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

it("a reserve that finds another key's lease answers voucher_busy until Postgres has a reservation", async () => {
  const { code, gate, reserving, refused } = await until(() =>
    inTime(ORPHAN_AFTER_MS, async () => {
      const started = await startReserve();
      return { ...started, refused: await rivalTill.reserve(started.code) };
    }),
  );
  expect(refused).toMatchObject({ status: 503, body: { code: "voucher_busy" } });
  expect(refused.headers.get("retry-after")).toBe("1");
  expect((await rivalTill.lookUp(code)).body.reservation).toBeNull();
  gate.open();
  expect(await reserving).toMatchObject({ ticket: expect.stringMatching(/^rsv_/) });
});

it("a reserve that found another key's lease is refused once Postgres has that key's reservation", async () => {
  const { code, gate, reserving } = await startReserve();
  const letItWrite = async () => {
    gate.open();
    await reserving;
  };
  const met = new HookedLeases({ afterAcquire: letItWrite });
  const rivalCaller = { ...holder, keyId: service.keys.rival.id };
  const refused = reserveVoucher({ ...delayed.ctx, leases: met }, rivalCaller, code);
  await expect(refused).rejects.toMatchObject({ code: "voucher_reserved" });
  expect(await reserving).toMatchObject({ ticket: expect.stringMatching(/^rsv_/) });
});

it("a reserve that found another key's lease tries once more after its last pause", async () => {
  const reserveLate = async () => {
    const { code, gate, reserving } = await startReserve();
    let met = 0;
    const letItWriteAtLast = async () => {
      met += 1;
      if (met < 4) return;
      gate.open();
      await reserving;
    };
    const leases = new HookedLeases({ afterAcquire: letItWriteAtLast });
    const rivalCaller = { ...holder, keyId: service.keys.rival.id };
    return reserveVoucher({ ...delayed.ctx, leases }, rivalCaller, code).catch((error: unknown) => ({ error }));
  };
  const answer = await until(() => inTime(ORPHAN_AFTER_MS, reserveLate));
  expect(answer).toMatchObject({ error: { code: "voucher_reserved" } });
});

it("a lease in Redis older than two seconds refuses no key if Postgres has no live reservation", async () => {
  const { id, code, reservation } = await makeReserved();
  const leases = new HookedLeases({ beforeRelease: fail });
  await releaseReservation({ ...delayed.ctx, leases }, holder, reservation.ticket, null);
  expect(await leaseTicket(id)).toBe(reservation.ticket);
  await age(id);
  const later = await rivalTill.reserve(code);
  expect(later.status).toBe(200);
  expect(await leaseTicket(id)).toBe(later.body.ticket);
});

it("a lease with an impossibly late end, as after Redis's clock was set back, refuses no key", async () => {
  const { id, code } = await issue();
  await servers.redis.set(servers.leaseKey(id), `${newId("rsv")} ${holder.keyId}`, "PX", 900_000 + 3_600_000);
  const reply = await rivalTill.reserve(code);
  expect(reply.status).toBe(200);
  expect(await leaseTicket(id)).toBe(reply.body.ticket);
});

it("a key that takes over another key's lease in Redis leaves that key's reservation unchanged", async () => {
  const { id, code } = await issue();
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

it("reserve answers 409 voucher_reserved if another program reserved without lease and row lock", async () => {
  const { id, code } = await issue();
  const ticket = `rsv_outside_${id}`;
  const { late } = await besideTransaction(servers.db, async (outside) => {
    await outside.query(
      `INSERT INTO reservations
         (started_at, expires_at, ticket, voucher_id, organization_id, key_id, state, token_secret_id)
         VALUES (clock_timestamp(), clock_timestamp() + interval '900 seconds', $1, $2, $3, $4, 'Live', 'none')`,
      [ticket, id, partner.organizationId, service.keys.rival.id],
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

it("a reserve whose new ticket already exists fails alone in its transaction", async () => {
  const { id, reservation } = await makeReserved();
  expect(await releaseReservation(delayed.ctx, holder, reservation.ticket, null)).toBe(true);
  const others = await issueVouchers(servers.db, partner, 5);
  const open = (voucherId: string, ticket: string) =>
    delayed.ctx.reservationCommitter
      .submit({ kind: "open", ...holder, voucherId, namedTicket: null, ticket, tokenSecretId: "none", seconds: 900 })
      .catch((error: unknown) => error);
  const [, ...outcomes] = await Promise.all([
    open(id, reservation.ticket),
    ...others.map((voucher, n) => open(voucher.id, `${reservation.ticket}${n}`)),
  ]);
  expect(outcomes).toMatchObject(others.map(() => ({ kind: "opened" })));
});

it("leases in Redis are deleted a few hundred at a time, with one warning for all failed deletions", async () => {
  const ended = Array.from({ length: 1_700 }, (_, n) => ({ voucherId: newId("vch"), ticket: `rsv_${n}` }));
  const warned: unknown[] = [];
  const log = { warn: (fields: unknown) => warned.push(fields) } as unknown as typeof delayed.ctx.log;
  let [running, most, calls] = [0, 0, 0];
  const beforeRelease = async () => {
    calls += 1;
    running += 1;
    most = Math.max(most, running);
    await new Promise(setImmediate);
    running -= 1;
  };
  await releaseLeases({ leases: new HookedLeases({ beforeRelease }), log }, ended);
  expect({ calls, most, warned }).toEqual({ calls: 1_700, most: 500, warned: [] });
  const hundredSucceed = () => {
    const isLate = calls >= 1_800;
    return beforeRelease().then(() => (isLate ? fail() : undefined));
  };
  await releaseLeases({ leases: new HookedLeases({ beforeRelease: hundredSucceed }), log }, ended);
  expect({ calls, warned }).toMatchObject({
    calls: 2_200,
    warned: [{ err: { message: "Redis is unavailable" }, remaining: 1_600 }],
  });
});

/** Hooks that run before a lease is deleted, or after it is acquired. */
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

async function makeReserved(): Promise<{ id: string; code: string; reservation: ReserveResponse }> {
  const { id, code } = await issue();
  return { id, code, reservation: await reserveVoucher(delayed.ctx, holder, code) };
}

/** Starts the holder's reserve of a new voucher. The call acquires the lease, then waits for the test. */
async function startReserve() {
  const { code } = await issue();
  const gate = makeGate();
  const ctx = { ...delayed.ctx, leases: new HookedLeases({ afterAcquire: gate.pass }) };
  const reserving = reserveVoucher(ctx, holder, code);
  await gate.reached;
  return { code, gate, reserving };
}

/** Makes a voucher's lease three seconds older. A lease of that age no longer refuses other keys. */
async function age(voucherId: string): Promise<void> {
  const key = servers.leaseKey(voucherId);
  await servers.redis.pexpire(key, (await servers.redis.pttl(key)) - 3_000);
}

async function leaseTicket(voucherId: string): Promise<string | null> {
  return (await servers.redis.get(servers.leaseKey(voucherId)))?.split(" ")[0] ?? null;
}
