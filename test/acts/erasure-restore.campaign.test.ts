import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { verifyAllChains } from "../../src/core/chain/verify-chains.ts";
import { migrateDatabase } from "../../src/platform/db/migrate.ts";
import { type Started, startNode } from "../support/child-process.ts";
import { partnerClient, send } from "../support/client.ts";
import { openLastingPool } from "../support/lasting-pool.ts";
import { makeOffer, signedIn } from "../support/marketplace.ts";
import { type OwnPostgres, openOwnPostgres } from "../support/own-postgres.ts";
import { dumpRedis } from "../support/redis-record.ts";
import { tablesWith } from "../support/row-dump.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { issueVouchers, makeKey } from "../support/supply.ts";
import { until, untilStarted } from "../support/until.ts";
import { makeIssuerKey, writeKeysFile } from "../support/user-tokens.ts";
import { openVoucherctl, type Voucherctl } from "../support/voucherctl.ts";
import { startReceiver, WEBHOOK_ENV } from "../support/webhook-receiver.ts";

const USER = 'sub "Ada" Lovelace';
const REFERRER = "sub Charles Babbage";
const ORDER = "order of Ada's";
const BATCH_ORDER = "batch for Mr. Menabrea";
const [PAYMENT, NOTE, RELEASE, VOID] = ["Ada pays", "a note about Ada", "Ada left the shop", "Ada does not want it"];
const TEXTS = [USER, REFERRER, ORDER, BATCH_ORDER, PAYMENT, NOTE, RELEASE, VOID];

const directory = mkdtempSync(join(tmpdir(), "voucher-erasure-"));
const { WEBHOOK_SECRET, WEBHOOK_ALLOW_PRIVATE } = WEBHOOK_ENV;
let postgres: OwnPostgres;
let servers: TestServers;
let db: pg.Pool;
let voucherctl: Voucherctl;
let env: Record<string, string>;
const processes: Started[] = [];

beforeAll(async () => {
  [postgres, servers] = await Promise.all([openOwnPostgres(), openTestServers()]);
  await postgres.superuser.query("CREATE DATABASE vouchers");
  const databaseUrl = postgres.url("vouchers");
  await migrateDatabase(databaseUrl);
  db = openLastingPool({ connectionString: databaseUrl, max: 4 });
  voucherctl = openVoucherctl({ adminUrl: databaseUrl, redisUrl: servers.redisUrl });
  env = {
    DATABASE_URL: databaseUrl,
    REDIS_URL: servers.redisUrl,
    RESERVATION_TOKEN_SECRET: "a-reservation-token-secret",
    OPS_DATABASE_URL: databaseUrl,
    ISSUER_API: "true",
    LOG_LEVEL: "trace",
    WEBHOOK_SECRET,
    WEBHOOK_ALLOW_PRIVATE,
  };
});

afterAll(async () => {
  for (const { child } of processes) child.kill("SIGKILL");
  await db.end();
  await Promise.all([postgres.close(), servers.close()]);
  rmSync(directory, { recursive: true });
});

it("an erased text is in no row, Redis key or log line, and erasure replay erases it after a restore", async () => {
  const issuer = await makeIssuerKey();
  const keysFile = writeKeysFile(issuer);
  const open = async () => {
    const url = await start({ AUTH_JWKS_URL: keysFile.url });
    return { url, till: partnerClient(url, key), user: await signedIn(url, issuer, USER) };
  };
  const offer = await makeOffer(db, 3);
  const { organizationId: org } = offer;
  const { key } = await makeKey(db, org, { scopes: ["voucher.read", "voucher.redeem", "voucher.issue"] });
  const service = await open();
  const used = await use(service, offer, key);
  const first = await repeat(service, offer, used.code);
  await postgres.saveFiles();
  await untilStarted(async () => (await send("GET", `${service.url}/readyz`)).status === 200);

  const erase = (...args: string[]) => voucherctl.json("person erase --yes", ...args);
  expect(await erase("--user", USER)).toMatchObject({ vouchers: 2, events: 2 });
  expect(await erase("--user", REFERRER)).toMatchObject({ vouchers: 0 });
  expect(await erase("--org", org, "--ref", ORDER)).toMatchObject({ vouchers: 1, events: 1 });
  expect(await erase("--org", org, "--ref", BATCH_ORDER)).toEqual({ vouchers: 0, events: 0, references: 2 });
  expect(await erase("--voucher", used.voidedId)).toMatchObject({ vouchers: 1, events: 1 });
  const listed = JSON.stringify(await voucherctl.json("erasure list"));
  for (const text of TEXTS) expect(listed).not.toContain(text);
  expect(await repeat(service, offer, used.code)).toEqual(first);
  await stop();
  await expectForgotten();

  await postgres.setBack();
  expect(await tablesWith(db, NOTE)).toEqual(["voucher_events"]);
  expect((await voucherctl.run("db adopt --yes")).exitCode).toBe(0);
  const file = join(directory, "erasures.json");
  writeFileSync(file, listed);
  const replay = () => voucherctl.json("erasure replay --yes", file);
  expect(await replay()).toEqual({ vouchers: 4, events: 4 });
  expect(await replay()).toEqual({ vouchers: 0, events: 0 });
  expect(await verifyAllChains({ pool: db })).toMatchObject({ broken: [], erased: 4 });
  expect(await repeat(await open(), offer, used.code)).toEqual(first);
  await stop();
  await expectForgotten();
  keysFile.remove();
});

type Service = { url: string; till: ReturnType<typeof partnerClient>; user: Awaited<ReturnType<typeof signedIn>> };
type Offer = Awaited<ReturnType<typeof makeOffer>>;

/** Starts an API and a worker, and returns the API's address. */
async function start(more: Record<string, string>): Promise<string> {
  const port = await findSteadyPort();
  const own = { ...env, ...more, PORT: String(port) };
  const [api, worker] = [startNode(["src/main.ts"], own), startNode(["workers/main.ts"], own)];
  processes.push(api, worker);
  const url = `http://127.0.0.1:${port}`;
  await untilStarted(() => api.output().includes('"listening"') && worker.output().includes('"working"'));
  await untilStarted(async () => (await send("GET", `${url}/readyz`)).status === 200);
  return url;
}

/** Ends the processes once the queues have removed the data of finished jobs. */
async function stop() {
  await until(async () => {
    const kept = await dumpRedis(servers.redis);
    return TEXTS.every((text) => !kept.includes(text));
  });
  for (const { child } of processes) child.kill("SIGTERM");
  await Promise.all(processes.map(({ ended }) => ended));
}

/** Sends each text in every call, command and form that stores a text. */
async function use({ url, till, user }: Service, offer: Offer, key: string) {
  const { organizationId: org, productId, brandId } = offer;
  const receiver = await startReceiver(() => 500);
  await receiver.addEndpoint(db, org);
  await voucherctl.json("member add", "--org", org, "--user", USER, "--role", "employee");
  const { id } = await voucherctl.json("contract offer", "--brand", brandId, "--user", REFERRER);
  await voucherctl.json("contract accept", id);
  const { code: link } = await voucherctl.json("link create", "--contract", id, "--product", productId);
  const issued = await send("POST", `${url}/issuer/products/${productId}/batches`, {
    key,
    body: { count: 1, validUntil: "2099-12-31", issueRef: BATCH_ORDER },
  });
  expect((await user.claimByLink(link)).status).toBe(200);
  expect((await user.buyListing(offer.listingId, { paymentRef: PAYMENT })).status).toBe(200);
  const [voided, ordered] = await issueVouchers(db, offer, 2);
  const [voidedCode, code] = [voided?.code ?? "", ordered?.code ?? ""];
  await voucherctl.json("voucher void", voidedCode, "--org", org, "--reason", VOID);
  expect((await till.redeem({ code: voidedCode, externalRef: ORDER })).status).toBe(409);
  const { body: reserved } = await till.reserve(code);
  expect((await till.release(reserved.ticket, RELEASE)).status).toBe(200);
  expect((await till.redeem({ code, externalRef: ORDER, note: NOTE })).status).toBe(200);
  expect(issued.status).toBe(200);
  await until(() => receiver.received.length > 0);
  await receiver.close();
  return { code, voidedId: voided?.id ?? "" };
}

/** Repeats all calls of `use`, as after lost responses, and returns the answers. */
async function repeat({ till, user }: Service, offer: Offer, code: string) {
  const answers = [
    await user.claimProduct(offer.productId),
    await user.buyListing(offer.listingId, { paymentRef: PAYMENT }),
    await till.redeem({ code, externalRef: ORDER, note: NOTE }),
  ];
  expect(answers.map(({ status, body }) => [status, body.alreadyConfirmed])).toEqual(answers.map(() => [200, true]));
  return answers.map(({ body }) => body.voucher?.id ?? body.redeemCode);
}

/** Expects none of the texts in any table, Redis key or log line, plain or as JSON. */
async function expectForgotten() {
  const written = [await dumpRedis(servers.redis), ...processes.map(({ output }) => output())].join("\n");
  expect(written.length).toBeGreaterThan(1_000);
  const isKept = (line: string) => TEXTS.some((text) => line.includes(text) || line.includes(quoted(text)));
  expect(written.split("\n").filter(isKept)).toEqual([]);
  for (const text of TEXTS) expect(await tablesWith(db, text), text).toEqual([]);
}

const quoted = (text: string) => JSON.stringify(text).slice(1, -1);
