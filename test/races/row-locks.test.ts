import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leaseKey } from "../../src/holds/lease.ts";
import { type PartnerClient, partnerClient, type Reply } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { besideTransaction, currentWaits, untilWaiting, whileLocked } from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { countJobs } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

let servers: TestServers;
let api: TestApi;
let partner: TestPartner;
let till: PartnerClient;
let rival: PartnerClient;
let workers: TestWorker[];

/** Jobs that one of the two workers runs at once: few, so that one voucher can fill them all. */
const CONCURRENCY = 8;

beforeAll(async () => {
  servers = await openTestServers();
  const env = { RATE_LIMIT_RPS: "0", MISS_LIMIT_PER_MINUTE: "0", REDEEM_WAIT_MS: "5000" };
  api = await startApi(servers, env);
  workers = await Promise.all([
    startWorkers(servers, { ...env, WORKER_CONCURRENCY: String(CONCURRENCY) }),
    startWorkers(servers, { ...env, WORKER_CONCURRENCY: String(CONCURRENCY) }),
  ]);
  partner = await makePartner(servers.db);
  const [one, other] = await Promise.all([
    makeKey(servers.db, partner.organizationId),
    makeKey(servers.db, partner.organizationId),
  ]);
  till = partnerClient(api.url, one.key);
  rival = partnerClient(api.url, other.key);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await api.close();
  await Promise.all(workers.map((worker) => worker.close()));
  await servers.close();
});

let refs = 0;

function newRef(): string {
  refs += 1;
  return `ref-${refs}`;
}

/** Redeems 20 other vouchers at once; all must be burnt when this resolves. */
async function burnOthers(): Promise<void> {
  const others = await issueVouchers(servers.db, partner, 20);
  const replies = await Promise.all(others.map(({ code }) => till.redeem({ code, externalRef: newRef() })));
  expect(replies.map(answerOf)).toEqual(others.map(() => "200"));
}

/** Reserves 20 other vouchers at once and gives them back; all must be done when this resolves. */
async function holdOthers(): Promise<void> {
  const others = await issueVouchers(servers.db, partner, 20);
  const held = await Promise.all(others.map(({ code }) => till.reserve(code)));
  expect(held.map(answerOf)).toEqual(others.map(() => "200"));
  const released = await Promise.all(held.map(({ body }) => till.release(body.ticket)));
  expect(released.map(({ body }) => body.released)).toEqual(others.map(() => true));
}

/** Looks 20 other vouchers up at once. */
async function lookUpOthers(): Promise<void> {
  const others = await issueVouchers(servers.db, partner, 20);
  const replies = await Promise.all(others.map(({ code }) => till.lookUp(code)));
  expect(replies.map(answerOf)).toEqual(others.map(() => "200"));
}

function answerOf({ status, body }: Reply): string {
  return status === 200 ? "200" : `${status} ${body.code}`;
}

describe("while somebody else holds one voucher's row", () => {
  it("other vouchers are redeemed, and its own redeem completes once the row is free", async () => {
    const stuck = await issueVoucher(servers.db, partner);
    const { redeem } = await whileLocked(servers.db, [stuck.id], async () => {
      const redeem = till.redeem({ code: stuck.code, externalRef: newRef() });
      await untilWaiting(servers.db, 1, "worker");
      await burnOthers();
      expect((await readRecorded(servers.db, stuck.id)).redemption).toBeNull();
      return { redeem };
    });
    expect(await redeem).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
  });

  it("a redeem whose voucher is in the same batch as the stuck one is not held up by it", async () => {
    const stuck = await issueVoucher(servers.db, partner);
    const others = await issueVouchers(servers.db, partner, 5);
    const { burnLanes } = (workers[0] as TestWorker).ctx;
    const burn = (voucherId: string) =>
      burnLanes.submit({
        attemptId: newRef(),
        voucherId,
        organizationId: partner.organizationId,
        keyId: "key",
        externalRef: newRef(),
        ticket: null,
        tokenHash: null,
        note: null,
        deadlineMs: Date.now() + 60_000,
      });
    const { own } = await whileLocked(servers.db, [stuck.id], async () => {
      const [own, ...together] = [stuck, ...others].map(({ id }) => burn(id));
      expect(await Promise.all(together)).toMatchObject(others.map(() => ({ reply: { kind: "burnt" } })));
      return { own };
    });
    expect(await own).toMatchObject({ reply: { kind: "burnt" } });
  });

  it("its redeem answers 503 voucher_busy with Retry-After when the wait is over, and the same ref burns it later", async () => {
    const stuck = await issueVoucher(servers.db, partner);
    const externalRef = newRef();
    await whileLocked(servers.db, [stuck.id], async () => {
      const reply = await till.redeem({ code: stuck.code, externalRef });
      expect(answerOf(reply)).toBe("503 voucher_busy");
      expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
    });
    expect((await readRecorded(servers.db, stuck.id)).redemption).toBeNull();
    const retry = await till.redeem({ code: stuck.code, externalRef });
    expect(retry).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
  });

  it("other vouchers are redeemed although six rows are stuck at once", async () => {
    const stuck = await issueVouchers(servers.db, partner, 6);
    const ids = stuck.map(({ id }) => id);
    const { redeems } = await whileLocked(servers.db, ids, async () => {
      const redeems = stuck.map(({ code }) => till.redeem({ code, externalRef: newRef() }));
      await untilWaiting(servers.db, 4, "worker");
      await burnOthers();
      return { redeems };
    });
    expect((await Promise.all(redeems)).map(answerOf)).toEqual(stuck.map(() => "200"));
  });

  it("other vouchers are redeemed although more redeems want the stuck one than the workers run at once", async () => {
    const stuck = await issueVoucher(servers.db, partner);
    const { redeems } = await whileLocked(servers.db, [stuck.id], async () => {
      const redeems = Array.from({ length: CONCURRENCY * 4 }, () =>
        till.redeem({ code: stuck.code, externalRef: newRef() }),
      );
      await untilWaiting(servers.db, workers.length, "worker");
      const firstWaits = await currentWaits(servers.db, "worker");
      await burnOthers();
      expect(await currentWaits(servers.db, "worker")).toEqual(expect.arrayContaining(firstWaits));
      return { redeems };
    });
    const answers = (await Promise.all(redeems)).map(answerOf);
    expect(answers.filter((answer) => answer === "200").length).toBeLessThanOrEqual(1);
    for (const answer of answers)
      expect(answer).toMatch(/^(200|409 voucher_used|503 (voucher_busy|overloaded|redeem_\w+))$/);
  });

  it("other vouchers are reserved and released, and its own reserve completes once the row is free", async () => {
    const stuck = await issueVoucher(servers.db, partner);
    const { reserve } = await whileLocked(servers.db, [stuck.id], async () => {
      const reserve = till.reserve(stuck.code);
      await untilWaiting(servers.db, 1, "api");
      await holdOthers();
      return { reserve };
    });
    const { status, body } = await reserve;
    expect(status).toBe(200);
    expect((await readRecorded(servers.db, stuck.id)).liveTicket).toBe(body.ticket);
  });

  it("its reserve answers 503 voucher_busy with Retry-After when the wait is over, and leaves no lease behind", async () => {
    const stuck = await issueVoucher(servers.db, partner);
    await whileLocked(servers.db, [stuck.id], async () => {
      const reply = await till.reserve(stuck.code);
      expect(answerOf(reply)).toBe("503 voucher_busy");
      expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
    });
    expect(await servers.redis.exists(leaseKey(stuck.id))).toBe(0);
    expect(await rival.reserve(stuck.code)).toMatchObject({ status: 200 });
  });

  it("other vouchers are reserved although 30 reserves of one key want the stuck one", async () => {
    const stuck = await issueVoucher(servers.db, partner);
    const { reserves } = await whileLocked(servers.db, [stuck.id], async () => {
      const reserves = Array.from({ length: 30 }, () => till.reserve(stuck.code));
      await untilWaiting(servers.db, 1, "api");
      await holdOthers();
      return { reserves };
    });
    const replies = await Promise.all(reserves);
    expect(new Set(replies.map(({ status, body }) => `${status} ${body.ticket}`)).size).toBe(1);
    expect(replies[0]?.status).toBe(200);
  });

  it("its release completes once the row is free", async () => {
    const stuck = await issueVoucher(servers.db, partner);
    const { ticket } = (await till.reserve(stuck.code)).body;
    const { release } = await whileLocked(servers.db, [stuck.id], async () => {
      const release = till.release(ticket);
      await untilWaiting(servers.db, 1, "api");
      await holdOthers();
      return { release };
    });
    expect(await release).toMatchObject({ status: 200, body: { released: true } });
    expect((await readRecorded(servers.db, stuck.id)).liveTicket).toBeNull();
  });

  it("its release answers 503 voucher_busy with Retry-After when the wait is over, and the hold stays", async () => {
    const stuck = await issueVoucher(servers.db, partner);
    const { ticket } = (await till.reserve(stuck.code)).body;
    await whileLocked(servers.db, [stuck.id], async () => {
      const reply = await till.release(ticket);
      expect(answerOf(reply)).toBe("503 voucher_busy");
      expect(Number(reply.headers.get("retry-after"))).toBeGreaterThan(0);
    });
    expect((await readRecorded(servers.db, stuck.id)).liveTicket).toBe(ticket);
  });

  it("other vouchers are looked up, reserved and redeemed although 30 releases want the stuck one", async () => {
    const stuck = await issueVoucher(servers.db, partner);
    const { ticket } = (await till.reserve(stuck.code)).body;
    const { releases } = await whileLocked(servers.db, [stuck.id], async () => {
      const releases = Array.from({ length: 30 }, () => till.release(ticket));
      await untilWaiting(servers.db, 1, "api");
      const firstWaits = await currentWaits(servers.db, "api");
      await lookUpOthers();
      await holdOthers();
      await burnOthers();
      expect(await currentWaits(servers.db, "api")).toEqual(expect.arrayContaining(firstWaits));
      return { releases };
    });
    const replies = await Promise.all(releases);
    expect(replies.filter(({ body }) => body.released === true)).toHaveLength(1);
    for (const { status, body } of replies)
      expect([true, false, "voucher_busy"]).toContain(body.released ?? (status === 503 && body.code));
  });
});

describe("while a burn under one reference is written and not committed", () => {
  it("another voucher's redeem under that reference waits alone: other references burn", async () => {
    const [first, second] = await issueVouchers(servers.db, partner, 2);
    const externalRef = newRef();
    const { redeem } = await besideTransaction(servers.db, async (outside) => {
      await outside.query(
        `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
         VALUES (clock_timestamp(), $1, $2, 'key', 'attempt', 'code', $3)`,
        [first?.id, partner.organizationId, externalRef],
      );
      const redeem = till.redeem({ code: second?.code, externalRef });
      await untilWaiting(servers.db, 1, "worker");
      await burnOthers();
      return { redeem };
    });
    expect(answerOf(await redeem)).toMatch(/^(200|503 \w+)$/);
  });
});

describe("a hot voucher", () => {
  it("with 40 callers that are refused again and again keeps no other voucher from being redeemed", async () => {
    const hot = await issueVoucher(servers.db, partner);
    await rival.reserve(hot.code);
    const answers: string[] = [];
    let enough = false;
    const callers = Array.from({ length: 40 }, async () => {
      while (!enough) answers.push(answerOf(await till.redeem({ code: hot.code, externalRef: newRef() })));
    });
    try {
      await until(() => answers.length > 100);
      await burnOthers();
      await burnOthers();
      const answeredMeanwhile = answers.length;
      await until(() => answers.length > answeredMeanwhile);
    } finally {
      enough = true;
    }
    await Promise.all(callers);
    expect(new Set(answers)).toEqual(new Set(["409 voucher_reserved"]));
    expect((await readRecorded(servers.db, hot.id)).redemption).toBeNull();
    expect(await countJobs(servers.redis, "redeem")).toBe(0);
  });
});
