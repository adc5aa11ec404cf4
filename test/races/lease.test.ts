import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Leases, leaseKey } from "../../src/holds/lease.ts";
import type { Caller } from "../../src/services/caller.ts";
import { releaseHold } from "../../src/services/release-hold.ts";
import { type ReserveResult, reserveVoucher } from "../../src/services/reserve-voucher.ts";
import { voidVoucher } from "../../src/services/void-voucher.ts";
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
/** The API whose leases a test hinders, and another one. */
let hindered: TestApi;
let other: TestApi;
let partner: TestPartner;
let holder: Caller;
let rival: Caller;
/** The holder and its rival at the other API. */
let holderTill: PartnerClient;
let rivalTill: PartnerClient;

beforeAll(async () => {
  servers = await openTestServers();
  [hindered, other] = await Promise.all([startApi(servers), startApi(servers)]);
  partner = await makePartner(servers.db);
  const [one, two] = await Promise.all([
    makeKey(servers.db, partner.organizationId),
    makeKey(servers.db, partner.organizationId),
  ]);
  holder = { keyId: one.id, organizationId: partner.organizationId };
  rival = { keyId: two.id, organizationId: partner.organizationId };
  [holderTill, rivalTill] = [partnerClient(other.url, one.key), partnerClient(other.url, two.key)];
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all([hindered.close(), other.close()]);
  await servers.close();
});

/** What stands in the way of giving a lease back, or of going on after taking one. */
interface Hindrance {
  beforeRelease?: () => Promise<void>;
  afterAcquire?: () => Promise<void>;
}

class HinderedLeases extends Leases {
  readonly #hindrance: Hindrance;

  constructor(hindrance: Hindrance) {
    super(hindered.ctx.redis);
    this.#hindrance = hindrance;
  }

  override async acquire(...args: Parameters<Leases["acquire"]>): ReturnType<Leases["acquire"]> {
    const held = await super.acquire(...args);
    await this.#hindrance.afterAcquire?.();
    return held;
  }

  override async release(...args: Parameters<Leases["release"]>): Promise<boolean> {
    await this.#hindrance.beforeRelease?.();
    return super.release(...args);
  }
}

const away = () => Promise.reject(new Error("Redis is away"));

/** A voucher that the holder holds. */
async function makeHeld(): Promise<{ id: string; code: string; hold: ReserveResult }> {
  const { id, code } = await issueVoucher(servers.db, partner);
  return { id, code, hold: await reserveVoucher(hindered.ctx, holder, code) };
}

/** Makes a voucher's lease look three seconds old: at that age it stops nobody by itself. */
async function age(voucherId: string): Promise<void> {
  await servers.redis.hincrby(leaseKey(voucherId), "start", -3_000);
}

function leaseTicket(voucherId: string): Promise<string | null> {
  return servers.redis.hget(leaseKey(voucherId), "ticket");
}

describe("a lease", () => {
  it("survives when an earlier hold's release gives its own lease back late", async () => {
    const { id, code, hold } = await makeHeld();
    const gate = makeGate();
    const leases = new HinderedLeases({ beforeRelease: gate.pass });
    const released = releaseHold({ ...hindered.ctx, leases }, holder, hold.ticket, null);
    await gate.reached;
    await age(id);
    const later = await rivalTill.reserve(code);
    expect(later.status).toBe(200);
    gate.open();
    expect(await released).toEqual({ released: true });
    expect(await leaseTicket(id)).toBe(later.body.ticket);
  });

  it("is given back when the voucher's row then refuses the hold", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const gate = makeGate();
    const ctx = { ...hindered.ctx, leases: new HinderedLeases({ afterAcquire: gate.pass }) };
    const refused = reserveVoucher(ctx, holder, code).catch((error: unknown) => error);
    await gate.reached;
    expect(await leaseTicket(id)).not.toBeNull();
    await voidVoucher(provisioning(servers.db), partner.organizationId, code, null);
    gate.open();
    expect(await refused).toMatchObject({ code: "voucher_voided" });
    expect(await leaseTicket(id)).toBeNull();
  });

  it("that is not two seconds old turns another key away before its row exists", async () => {
    const { code } = await issueVoucher(servers.db, partner);
    const gate = makeGate();
    const ctx = { ...hindered.ctx, leases: new HinderedLeases({ afterAcquire: gate.pass }) };
    const opening = reserveVoucher(ctx, holder, code);
    await gate.reached;
    expect(await rivalTill.reserve(code)).toMatchObject({ status: 409, body: { code: "voucher_reserved" } });
    gate.open();
    expect(await opening).toMatchObject({ ticket: expect.stringMatching(/^rsv_/) });
  });

  it("without a live hold stops nobody once it is more than two seconds old", async () => {
    const { id, code, hold } = await makeHeld();
    await releaseHold(
      { ...hindered.ctx, leases: new HinderedLeases({ beforeRelease: away }) },
      holder,
      hold.ticket,
      null,
    );
    expect(await leaseTicket(id)).toBe(hold.ticket);
    await age(id);
    const taken = await rivalTill.reserve(code);
    expect(taken.status).toBe(200);
    expect(await leaseTicket(id)).toBe(taken.body.ticket);
  });

  it("that was taken over leaves the first reserve the hold that it opened", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const { first, second } = await whileLocked(servers.db, [id], async () => {
      const first = reserveVoucher(hindered.ctx, holder, code);
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

  it("that a failed release left behind does not change what the same key's next reserve answers", async () => {
    const { id, code, hold } = await makeHeld();
    const leases = new HinderedLeases({ beforeRelease: away });
    expect(await releaseHold({ ...hindered.ctx, leases }, holder, hold.ticket, null)).toEqual({ released: true });
    const { status, body } = await holderTill.reserve(code);
    expect({ status, code: body.code }).toEqual({ status: 200, code: undefined });
    expect(body.ticket).not.toBe(hold.ticket);
    expect((await readRecorded(servers.db, id)).liveTicket).toBe(body.ticket);
  });

  it("that a release has not deleted yet does not change what the same key's reserve answers", async () => {
    const { id, code, hold } = await makeHeld();
    const gate = makeGate();
    const leases = new HinderedLeases({ beforeRelease: gate.pass });
    const released = releaseHold({ ...hindered.ctx, leases }, holder, hold.ticket, null);
    await gate.reached;
    const { status, body } = await holderTill.reserve(code);
    gate.open();
    expect(await released).toEqual({ released: true });
    expect({ status, code: body.code }).toEqual({ status: 200, code: undefined });
    expect((await readRecorded(servers.db, id)).liveTicket).toBe(body.ticket);
  });

  it("that names an ended hold spoils none of the reserves that share its transaction", async () => {
    const { id, hold } = await makeHeld();
    expect(await releaseHold(hindered.ctx, holder, hold.ticket, null)).toEqual({ released: true });
    const others = await issueVouchers(servers.db, partner, 5);
    const open = (voucherId: string, ticket: string) =>
      hindered.ctx.holdLanes
        .submit({ kind: "open", ...holder, voucherId, ticket, tokenSecretId: "none", seconds: 900 })
        .catch((error: unknown) => error);
    const [, ...outcomes] = await Promise.all([
      open(id, hold.ticket),
      ...others.map((voucher, n) => open(voucher.id, `${hold.ticket}${n}`)),
    ]);
    expect(outcomes).toMatchObject(others.map(() => ({ kind: "opened" })));
  });
});

describe("the one live hold of a voucher", () => {
  it("turns away a reserve that got past lease and row lock, with the reason", async () => {
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
});
