import { beforeAll, describe, expect, it, vi } from "vitest";
import { type PartnerClient, partnerClient, type Reply, send } from "../../support/client.ts";
import { expectFairRound } from "../../support/fair-rounds.ts";
import { makeOffer, makeReferral, signedIn } from "../../support/marketplace.ts";
import { besideTransaction, countWaiting, untilWaiting } from "../../support/outside-transaction.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { itOnOneRedis } from "../../support/servers.ts";
import { startApi, startApiUnready, type TestApi } from "../../support/service.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { issueVouchers } from "../../support/supply.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const { servers, api, partner, keys, issuer, issue } = useService({ users: true });
let withoutRedis: TestApi;
let withoutPostgres: TestApi;
let withoutBoth: TestApi;

beforeAll(async () => {
  const port = await findSteadyPort();
  const noRedis = { REDIS_URL: `redis://127.0.0.1:${port}/0` };
  const noPostgres = { DATABASE_URL: `postgres://unknown:a-secret-password@127.0.0.1:${port}/nowhere` };
  withoutRedis = await startApiUnready(servers, noRedis);
  withoutPostgres = await startApiUnready(servers, noPostgres);
  withoutBoth = await startApiUnready(servers, { ...noRedis, ...noPostgres });
});

it("GET /healthz answers 200 while the process runs", async () => {
  for (const each of [api, withoutRedis, withoutPostgres, withoutBoth]) {
    const { status, body, headers } = await send("GET", `${each.url}/healthz`);
    expect({ status, body }).toEqual({ status: 200, body: { status: "ok" } });
    expect(headers.get("x-request-id")).toEqual(expect.any(String));
  }
});

/** The answer to a probe when the process is ready. On a busy machine, a server may answer some probes too late. */
async function isReady(): Promise<Reply | null> {
  const reply = await send("GET", `${api.url}/readyz`);
  return reply.status === 200 ? reply : null;
}

describe("GET /readyz", () => {
  it("GET /readyz answers 200 when Postgres and Redis answer, even with every connection in use", async () => {
    const { pool } = api.ctx;
    const clients = [];
    // Opens one connection after another, because a busy machine cannot open all within one time limit.
    while (clients.length < pool.options.max) clients.push(await pool.connect());
    const { status, body } = await until(isReady);
    for (const client of clients) client.release();
    expect({ status, body }).toEqual({ status: 200, body: { status: "ok", postgres: "ok", redis: "ok" } });
  });

  it.each([
    ["Redis", () => withoutRedis, { postgres: "ok", redis: "unavailable" }],
    ["Postgres", () => withoutPostgres, { postgres: "unavailable", redis: "ok" }],
    ["both", () => withoutBoth, { postgres: "unavailable", redis: "unavailable" }],
  ])("GET /readyz answers 503 and names the unreachable server: %s", async (_which, which, named) => {
    const reply = await until(async () => {
      const found = await send("GET", `${which().url}/readyz`);
      return found.body.postgres === named.postgres && found.body.redis === named.redis ? found : null;
    });
    expectUnavailable(reply, "unavailable", { ...named, error: expect.stringMatching(/Postgres|Redis/) });
  });

  /** Collects the log levels of the process's requests by request id. */
  function recordLevels({ ctx }: TestApi): Map<unknown, string> {
    const levels = new Map<unknown, string>();
    for (const level of ["info", "warn"] as const) {
      const record = ({ requestId }: { requestId?: string }) => void levels.set(requestId, level);
      ctx.log[level] = record as typeof ctx.log.warn;
    }
    return levels;
  }

  itOnOneRedis("GET /readyz logs a warning in a process that has lost Redis, but not during its start", async () => {
    const proxy = await openTcpProxy(servers.redisUrl);
    const cut = await startApi({ ...servers, redisUrl: proxy.url });
    proxy.cut();
    try {
      for (const [each, level] of [
        [withoutRedis, "info"],
        [cut, "warn"],
      ] as const) {
        const levels = recordLevels(each);
        const { headers } = await until(async () => {
          const reply = await send("GET", `${each.url}/readyz`);
          // On a busy machine, Postgres may be late as well. Then the test probes again.
          return reply.status === 503 && reply.body.postgres === "ok" ? reply : null;
        });
        expect(await until(() => levels.get(headers.get("x-request-id")))).toBe(level);
      }
    } finally {
      proxy.mend();
      await cut.close();
      await proxy.close();
    }
  });
});

it("concurrent probes of /readyz share one check of the servers, however long the check takes", async () => {
  const measure = async () => {
    const looked = vi.spyOn(api.ctx.probes, "query");
    const only = await api.ctx.probes.connect();
    const probe = () => send("GET", `${api.url}/readyz`);
    const probes: ReturnType<typeof probe>[] = [];
    // /readyz may still repeat an earlier result.
    await until(() => {
      probes.push(probe());
      return looked.mock.calls.length > 0;
    });
    probes.push(...Array.from({ length: 100 }, probe));
    only.release();
    const statuses = [...new Set((await Promise.all(probes)).map(({ status }) => status))];
    const checks = looked.mock.calls.length;
    looked.mockRestore();
    return { checks, statuses };
  };
  // Probes within half a second share a result. A busy machine may need several half seconds for all probes.
  await expectFairRound(5, measure, ({ checks, statuses }) => checks < 20 && String(statuses) === "200");
});

it("a readiness check's result is not reused after its connection to Postgres is lost", async () => {
  const { probes, probeServers } = api.ctx;
  const { rows } = await probes.query("SELECT pg_backend_pid() AS pid");
  await probeServers();
  const lost = new Promise((resolve) => probes.once("remove", resolve));
  await servers.db.query("SELECT pg_terminate_backend($1)", [rows[0].pid]);
  await lost;
  const looked = vi.spyOn(probes, "query");
  expect(await probeServers()).toMatchObject({ unusable: null });
  expect(looked).toHaveBeenCalled();
  looked.mockRestore();
});

/** Makes Postgres refuse new rows of `database_marks`, as it does when it refuses all writes. */
async function refuseMarks(errcode: string, words: string, db: Pick<typeof servers.db, "query"> = servers.db) {
  await db.query(`
    CREATE FUNCTION refuse_marks() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION '${words}' USING ERRCODE = '${errcode}'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON database_marks EXECUTE FUNCTION refuse_marks()`);
  return () => db.query("DROP FUNCTION refuse_marks CASCADE");
}

const ready = async () => (await send("GET", `${api.url}/readyz`)).body;

it("GET /readyz reports a full disk in Postgres's words, and recovers afterwards", async () => {
  const words = "could not extend file: No space left on device";
  const end = await refuseMarks("53100", words);
  const body = await until(async () => {
    const found = await ready();
    return found.redis === "ok" && found.error?.includes(words) && found;
  });
  expect(body).toMatchObject({ postgres: "unavailable", redis: "ok", error: `Postgres refuses writes: ${words}.` });
  await end();
  await until(async () => (await ready()).status === "ok");
});

it("GET /readyz answers 503 when Postgres becomes read-only for open sessions", async () => {
  // Uses a session of its own that can still write.
  const owner = await servers.db.connect();
  const set = (value: string) =>
    owner.query(
      `ALTER DATABASE ${new URL(servers.ownerUrl).pathname.slice(1)} SET default_transaction_read_only = ${value}`,
    );
  // New sessions are read-only. Writes in old sessions fail with the same error.
  await set("on");
  const end = await refuseMarks("25006", "cannot execute INSERT in a read-only transaction", owner);
  try {
    await until(async () => /read.only/i.test((await ready()).error ?? ""));
    expect(await ready()).toMatchObject({ postgres: "unavailable" });
  } finally {
    await set("off");
    await end();
    owner.release();
  }
  await until(async () => (await ready()).status === "ok");
});

it.each([
  [
    "a table",
    "ALTER TABLE vouchers RENAME TO away",
    "ALTER TABLE away RENAME TO vouchers",
    /"vouchers" does not exist/,
  ],
  ["a column", "ALTER TABLE vouchers RENAME id TO away", "ALTER TABLE vouchers RENAME away TO id", /id does not exist/],
  [
    "a right",
    "ALTER TABLE vouchers RENAME TO away; CREATE VIEW vouchers AS SELECT FROM away",
    "DROP VIEW vouchers; ALTER TABLE away RENAME TO vouchers",
    // The owner gets a different error: it has the right, but the view has no columns.
    /lacks a right: permission denied for view vouchers\. Run as the owner: voucherctl db roles|does not exist/,
  ],
])("while the database lacks %s, every call gets 503 with a log line that says so", async (_, lose, mend, words) => {
  const till = partnerClient(api.url, keys.till.key);
  const { code, id } = await issue();
  const { ticket } = (await till.reserve(code)).body;
  const warn = vi.spyOn(api.ctx.log, "warn");
  await servers.db.query(lose);
  try {
    const answers = [
      await till.lookUp(code),
      await till.events(code),
      await till.reserve(code),
      await till.release(ticket),
      await till.redeem({ code, externalRef: `without ${words}` }),
      await send("GET", `${api.url}/integrity/events/VoucherInstance/${id}`),
    ];
    for (const answer of answers) expectUnavailable(answer, "unavailable");
    const told = () => warn.mock.calls.flatMap(([line, what]: unknown[]) => (what === "request" ? [line] : []));
    await until(() => told().length === answers.length);
    expect(told()).toEqual(answers.map(() => expect.objectContaining({ reason: expect.stringMatching(words) })));
  } finally {
    await servers.db.query(mend);
    warn.mockRestore();
  }
  expect(await till.lookUp(code)).toMatchObject({ status: 200 });
});

describe("while all unbatched reads are blocked in Postgres", () => {
  it("while many unbatched reads are blocked, /readyz, look-ups, reserves and releases answer", async () => {
    const offer = await makeOffer(servers.db, 3);
    const referral = await makeReferral(servers.db, offer);
    const till = partnerClient(api.url, keys.till.key);
    const user = await signedIn(api.url, issuer);
    const [voucher, held] = await issueVouchers(servers.db, partner, 2);
    const { ticket } = (await till.reserve(held?.code ?? "")).body;
    const history = `${api.url}/integrity/events/VoucherInstance/${voucher?.id}`;
    const calls = [
      () => till.events(voucher?.code ?? ""),
      () => send("GET", history),
      () => send("GET", `${api.url}/marketplace/listings`),
      () => user.buyListing(offer.listingId),
      () => user.buyProduct(offer.productId),
      () => user.claimByLink(referral.code),
    ];
    const { callers } = await besideTransaction(servers.db, async (outside) => {
      await outside.query(
        "LOCK TABLE voucher_events, listings, referral_links, purchases, claims IN ACCESS EXCLUSIVE MODE",
      );
      let enough = false;
      // Uses the maximum number of waiting calls of each kind, because the API would refuse more calls at once.
      const callers = Array.from({ length: 72 }, async (_, n) => {
        while (!enough) await calls[n % calls.length]?.();
      });
      try {
        // At most two shared reads of acquisitions, two public reads and two of the partner's reads wait.
        await untilWaiting(servers.db, 6, "api");
        const answers = [
          ...(await Promise.all([until(isReady), until(isReady), until(isReady)])),
          await till.lookUp(voucher?.code ?? ""),
          await till.reserve(voucher?.code ?? ""),
          await till.release(ticket),
          await until(isReady),
        ];
        expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
        expect(await countWaiting(servers.db, "api")).toBeLessThanOrEqual(6);
      } finally {
        enough = true;
      }
      return { callers };
    });
    await Promise.all(callers);
  });
});

describe("while Redis cannot be reached from the start", () => {
  let till: PartnerClient;

  beforeAll(() => {
    till = partnerClient(withoutRedis.url, keys.till.key);
  });

  it("while Redis is unreachable from the start, look-ups and events answer 200", async () => {
    const voucher = await issue();
    const found = await till.lookUp(voucher.code);
    expect({ status: found.status, id: found.body.voucher.id }).toEqual({ status: 200, id: voucher.id });
    expect(await till.events(voucher.code)).toMatchObject({ status: 200, body: { entityId: voucher.id } });
    const open = await send("GET", `${withoutRedis.url}/integrity/events/VoucherInstance/${voucher.id}`);
    expect(open.status).toBe(200);
    expect((await till.lookUp("7Q4K-9MZX-2HTB-W8RC")).status).toBe(404);
  });

  it("while Redis is unreachable from the start, reserve answers 503 and reserves nothing", async () => {
    const voucher = await issue();
    const before = await dumpRows(servers.db);
    expectUnavailable(await till.reserve(voucher.code), "unavailable");
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it("while Redis is unreachable from the start, redeem answers redeem_timeout and redeems nothing", async () => {
    const voucher = await issue();
    const before = await dumpRows(servers.db);
    const reply = await till.redeem({ code: voucher.code, externalRef: "without-redis" });
    expectUnavailable(reply, "redeem_timeout");
    expect(await dumpRows(servers.db)).toEqual(before);
    const later = await partnerClient(api.url, keys.till.key).redeem({
      code: voucher.code,
      externalRef: "without-redis",
    });
    expect({ status: later.status, confirmed: later.body.alreadyConfirmed }).toEqual({ status: 200, confirmed: false });
  });

  it("while Redis is unreachable from the start, routes that need only Postgres work", async () => {
    const [held, redeemed] = await issueVouchers(servers.db, partner, 2);
    const expired = await issue({ validUntil: new Date(Date.now() - 1_000) });
    const full = partnerClient(api.url, keys.till.key);
    const reservation = (await full.reserve(held?.code ?? "")).body;
    const redeem = (await full.redeem({ code: redeemed?.code, externalRef: "before-redis-went" })).body;

    expect((await till.reserve(held?.code ?? "")).body).toEqual(reservation);
    const retry = await till.redeem({ code: redeemed?.code, externalRef: "before-redis-went" });
    expect({ status: retry.status, body: retry.body }).toEqual({
      status: 200,
      body: { ...redeem, alreadyConfirmed: true },
    });
    expect((await till.redeem({ code: redeemed?.code, externalRef: "other" })).body.code).toBe("voucher_used");
    expect((await till.reserve(expired.code)).body.code).toBe("voucher_expired");
    expect(await till.release(reservation.ticket)).toMatchObject({ status: 200, body: { released: true } });
  });
});

describe("while Postgres cannot be reached from the start", () => {
  it("while Postgres is unreachable, routes that need no database work", async () => {
    const { url } = withoutPostgres;
    expect((await send("GET", `${url}/partner/vouchers/7Q4K`)).status).toBe(401);
    expect((await send("GET", `${url}/nowhere`)).status).toBe(404);
    expect((await send("DELETE", `${url}/healthz`)).status).toBe(405);
  });
});

/** Expects an answer in the common form of errors, with the time to wait and without internal details. */
function expectUnavailable({ status, body, headers }: Reply, code: string, more = {}): void {
  const error = expect.stringMatching(/^[A-Z].*\.$/);
  const requestId = headers.get("x-request-id");
  expect({ status, body }).toEqual({ status: 503, body: { error, code, requestId, ...more } });
  expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(JSON.stringify(body)).not.toMatch(/ECONN|127\.0\.0\.1|password|nowhere|ioredis/i);
}
