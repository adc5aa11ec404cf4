import { beforeAll, expect, it } from "vitest";
import type { IssuedVoucher } from "../../../src/acts/issue-batch.ts";
import { revokeApiKey } from "../../../src/acts/key/revoke.ts";
import { rotateKey } from "../../../src/acts/key/rotate.ts";
import { makeApiKey } from "../../../src/core/keys/api-keys.ts";
import { pooledRandomBytes } from "../../../src/platform/random.ts";
import { runNode } from "../../support/child-process.ts";
import { makeOffer, makeReferral } from "../../support/marketplace.ts";
import { makeOperator } from "../../support/operators.ts";
import { untilWaiting, whileLocked } from "../../support/outside-transaction.ts";
import { exchange } from "../../support/raw-http.ts";
import { dumpRedis, recordRedis } from "../../support/redis-record.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { scrape } from "../../support/scrape.ts";
import { issueVouchers, makeKey, provisioning } from "../../support/supply.ts";
import { openTcpProxy, type TcpProxy } from "../../support/tcp-proxy.ts";
import { openTraceCollector } from "../../support/trace-collector.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { makeIssuerKey, signUser, writeKeysFile } from "../../support/user-tokens.ts";
import { voidVoucher } from "../../support/void-voucher.ts";
import { startHostileService } from "./hostile-service.ts";

/** Secrets of the processes themselves. */
const OPS_TOKEN = "ops-token-that-opens-the-dashboard";
const SIGNING = ["reservation-secret-that-signs-now", "reservation-secret-that-signed-before"];

/** Secrets that grant access. Only their recipient may see them. */
const credentials: Secrets = {};
/** Secrets worth money. Only the partner may see them, in answers and payloads. */
const codes: Secrets = {};
/** Proofs of a redemption for the customer. Only the partner may see them, in answers and payloads. */
const redeemCodes: Secrets = {};
/** Texts from callers, and tickets. Only the queue and the database may contain them. */
const words: Secrets = {};

/** All output of the run, by channel. */
const emitted: Record<string, string> = {};

/** Statuses of all answers, to check that the run was complete. */
const statuses = new Set<number>();

const { servers, db, partner, keys, issuer } = useService({ apis: [], workers: [] });

beforeAll(run);

it("the run whose output is searched for secrets has written to every kind of output", () => {
  expect([...statuses].sort()).toEqual(expect.arrayContaining([200, 400, 401, 403, 404, 405, 409, 500, 503]));
  for (const [where, text] of Object.entries(emitted)) expect(text.length, where).toBeGreaterThan(150);
  expect(emitted.log).toContain('"constraint":"poisoned"');
  expect(emitted.log).toContain('"level":"error"');
  expect(emitted["Redis without replies"]).toContain("failedReason");
  expect(emitted.dashboard).toContain("failedReason");
  expect(emitted["audit entries"]).toContain("voucher void");
  expect(emitted.traces).toContain("process redeem");
});

const FOR_ALL = ["log", "metrics", "traces", "dashboard", "refusals", "public answers"];
const VALUABLE = [credentials, codes, redeemCodes];

type Secrets = Record<string, string>;

it.each([
  ...FOR_ALL.map((where): [string, Secrets[]] => [where, [...VALUABLE, words]]),
  ...["audit entries", "voucherctl", "Redis without replies"].map((where): [string, Secrets[]] => [where, VALUABLE]),
  // Includes codes that it issued.
  ["database", [credentials]],
])("no output of the service contains secrets: %s", (where, secrets) => {
  expect(find(emitted[where], ...secrets)).toEqual([]);
});

/** Uses every feature, including failures, and fills `emitted` and the secrets. */
async function run(): Promise<void> {
  const database = await openTcpProxy(servers.databaseUrl);
  const [collector, record] = [await openTraceCollector(), await recordRedis(servers.redisUrl)];
  const keysFile = writeKeysFile(issuer);
  const service = await startRecorded(database.url, collector.url, keysFile.url);
  const subjects = await makeSubjects();
  const calls = openCalls(service.url, subjects);
  const answers = await callSuccessfully(calls, subjects);
  const publicly = await readPublicly(calls, subjects);
  for (const secret of [subjects.key, subjects.userToken, subjects.vouchers.lookedUp.code, answers.reservation.token]) {
    await misplaceInPaths(calls, subjects, secret);
    await misplaceInHeaders(calls, subjects, secret);
    await misplaceInBodies(calls, subjects, secret, answers.reservation.token);
    await misplaceInLines(calls, secret);
  }
  await callUnauthenticated(calls, subjects);
  await failInDatabase(calls, subjects, answers.reservation, database);
  const dashboard = await visitDashboard(calls, subjects);
  nameSecrets(subjects, answers);

  const reports = await Promise.all(Object.values(service.metricsUrls).map(scrape));
  emitted.metrics = reports.map(({ text }) => text).join("\n");
  const ended = await service.stop();
  const snapshots = [answers.snapshot, await dumpRedis(servers.redis)];
  record.close();
  keysFile.remove();
  await Promise.all([collector.close(), database.close()]);
  emitted.log = [ended.api, ended.worker].map(({ stdout, stderr }) => `${stdout}${stderr}`).join("\n");
  emitted.dashboard = dashboard.join("\n");
  emitted.refusals = calls.refusals.join("\n");
  emitted["public answers"] = publicly.join("\n");
  emitted.traces = collector.bodies.map(({ bytes }) => bytes.toString("utf8")).join("\n");
  emitted.voucherctl = subjects.printed.join("\n");
  const rows = await dumpRows(db);
  emitted["audit entries"] = (rows.audit_entries ?? []).join("\n");
  emitted.database = JSON.stringify(rows);
  // Redis may contain redeem codes only in replies to the API.
  const redis = [record.text(), ...snapshots].join("\n");
  emitted["Redis without replies"] = redis.replace(/\\*"redeemCode\\*":\\*"[0-9A-Z-]+\\*"/g, "(a redeem code)");
  expect(redis).toContain("redeemCode");
}

/** Starts an API and a worker that log and trace everything. */
function startRecorded(databaseUrl: string, collectorUrl: string, keysUrl: string) {
  return startHostileService(
    { databaseUrl, redisUrl: servers.redisUrl },
    {
      LOG_LEVEL: "trace",
      OPS_TOKEN,
      RESERVATION_TOKEN_SECRET: SIGNING.join(","),
      AUTH_JWKS_URL: keysUrl,
      SWEEP_INTERVAL_MS: "200",
      REDEEM_WAIT_MS: "8000",
      OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    },
  );
}

type Subjects = Awaited<ReturnType<typeof makeSubjects>>;

/** Makes vouchers, keys and tokens, with audit entries. */
async function makeSubjects() {
  const issued = await issueVouchers(db, partner, 12);
  const [lookedUp, reserved, redeemed, poisoned, locked, voided, late, spare] = issued as [
    ...[IssuedVoucher, IssuedVoucher, IssuedVoucher, IssuedVoucher],
    ...[IssuedVoucher, IssuedVoucher, IssuedVoucher, IssuedVoucher],
  ];
  const [{ key }, till] = [keys.till, keys.rival];
  const unbound = await makeKey(db, null);
  const revoked = await makeKey(db, partner.organizationId);
  await revokeApiKey.run(provisioning(db), revoked.id, {});
  const rotated = await rotateKey.run(provisioning(db), till.id, { grace: 3_600_000 });
  await voidVoucher(provisioning(db), partner.organizationId, voided.code, "printed twice");
  const offer = await makeOffer(db, 5);
  const link = await makeReferral(db, offer);
  const voucherctl = (...args: string[]) =>
    runNode(["src/cli/main.ts", ...args], { DATABASE_URL: servers.adminUrl, REDIS_URL: servers.redisUrl });
  const made = await voucherctl("key", "create", "--org", partner.organizationId, "--scope", "voucher.read", "--json");
  const commands = [
    await voucherctl("voucher", "void", spare.code, "--org", partner.organizationId),
    await voucherctl("voucher", "void", "7Q4K-9MZX-2HTB-W8RC", "--org", partner.organizationId),
    await voucherctl("key", "list", "--org", partner.organizationId),
  ];
  return {
    issued,
    vouchers: { lookedUp, reserved, redeemed, poisoned, locked, voided, late },
    key,
    till,
    unbound,
    revoked,
    rotated,
    offer,
    link,
    /** The key that voucherctl printed, and all other output of its commands. */
    madeKey: JSON.parse(made.stdout).key as string,
    printed: [made.stderr, ...commands.flatMap(({ stdout, stderr }) => [stdout, stderr])],
    userToken: await signUser(issuer, "a-user"),
    forged: await signUser(await makeIssuerKey("EdDSA", issuer.kid), "a-user"),
    operator: await makeOperator(db, "viewer"),
    unknown: makeApiKey(pooledRandomBytes),
    mistyped: `${key.slice(0, -1)}${key.endsWith("0") ? "1" : "0"}`,
  };
}

type Calls = ReturnType<typeof openCalls>;

/** Calls the service. Records statuses and refusals. By default, sends the partner's key. */
function openCalls(url: string, { key, userToken }: Subjects) {
  const refusals: string[] = [];
  const by: Record<string, string> = { "x-api-key": key };
  const ask = async (method: string, path: string, headers: Record<string, string> = {}, body?: unknown) => {
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const reply = await fetch(`${url}${path}`, { method, headers, body: text ?? null, redirect: "manual" });
    const answered = { status: reply.status, text: await reply.text(), headers: reply.headers };
    statuses.add(reply.status);
    if (reply.status >= 400) refusals.push(JSON.stringify([...reply.headers]), answered.text);
    return answered;
  };
  const post = (path: string, body: unknown, headers = by) => ask("POST", path, headers, body);
  return {
    url,
    by,
    user: { authorization: `Bearer ${userToken}` },
    refusals,
    ask,
    post,
    redeem: (body: Record<string, unknown>, headers = by) => post("/partner/vouchers/redeem", body, headers),
  };
}

const WRONG_TOKEN = "a-reservation-token-that-is-wrong";

interface Reservation {
  ticket: string;
  token: string;
}

type Answers = Awaited<ReturnType<typeof callSuccessfully>>;

async function callSuccessfully({ ask, post, redeem, by, user }: Calls, subjects: Subjects) {
  const { till, rotated, offer, link } = subjects;
  const { lookedUp, reserved, redeemed, late } = subjects.vouchers;
  await ask("GET", `/partner/vouchers/${lookedUp.code}`, by);
  await ask("GET", `/partner/vouchers/${lookedUp.code}/events`, by);
  const reserve = async (code: string): Promise<Reservation> =>
    JSON.parse((await post("/partner/vouchers/reserve", { code })).text);
  const reservation = await reserve(reserved.code);
  const snapshot = await dumpRedis(servers.redis);
  const { ticket, token } = reservation;
  const refused = await redeem({ ticket, token: WRONG_TOKEN, externalRef: "WORD-REF-0" }, { "x-api-key": till.key });
  const withToken = { ticket, token, externalRef: "WORD-REF-1", note: "WORD-NOTE" };
  const first = await redeem(withToken, { "x-api-key": rotated.key });
  const second = await redeem({ code: redeemed.code, externalRef: "WORD-REF-2" });
  expect([refused.status, first.status, second.status]).toEqual([409, 200, 200]);
  const repeated = await redeem({ code: redeemed.code, externalRef: "WORD-REF-2" });
  expect(JSON.parse(repeated.text).alreadyConfirmed).toBe(true);
  const lateReservation = await reserve(late.code);
  await post("/partner/vouchers/release", { ticket: lateReservation.ticket, reason: "WORD-REASON" });
  const bought = await post(`/marketplace/listings/${offer.listingId}/buy`, { paymentRef: "WORD-PAYMENT" }, user);
  const claimed = await post(`/r/${link.code}/claim`, {}, user);
  expect([bought.status, claimed.status]).toEqual([200, 200]);
  return { reservation, lateReservation, snapshot, redemptions: [first, second], acquisitions: [bought, claimed] };
}

async function readPublicly({ ask }: Calls, { vouchers }: Subjects): Promise<string[]> {
  const read: string[] = [];
  for (const accept of ["application/json", "text/html"]) {
    for (const path of [
      `/integrity/events/VoucherInstance/${vouchers.redeemed.id}`,
      `/integrity/events/VoucherInstance/${vouchers.redeemed.id}/history`,
      `/integrity/events/VoucherInstance/${vouchers.reserved.id}`,
      "/",
      "/docs",
      "/openapi.json",
      "/marketplace/listings",
    ]) {
      read.push((await ask("GET", path, { accept })).text);
    }
  }
  return read;
}

async function misplaceInPaths({ ask, by }: Calls, { vouchers }: Subjects, secret: string): Promise<void> {
  const { lookedUp } = vouchers;
  for (const path of [
    `/partner/vouchers/${secret}`,
    `/nowhere/${secret}?x-api-key=${secret}`,
    `/integrity/events/VoucherInstance/${secret}`,
    `/integrity/events/${secret}/x`,
    `/marketplace/listings/${secret}`,
    `/marketplace/listings?cursor=${secret}&limit=${secret}`,
    `/partner/vouchers/${lookedUp.code}/events?after=${secret}`,
    `/assets/${secret}`,
    `/docs/${secret}`,
    `/ops/queues/${secret}`,
  ]) {
    await ask("GET", path);
    await ask("DELETE", path, by);
    if (secret !== lookedUp.code) await ask("GET", path, by);
    await ask("GET", path, { accept: "text/html", authorization: `Bearer ${secret}` });
  }
}

async function misplaceInHeaders({ ask }: Calls, { key, vouchers }: Subjects, secret: string): Promise<void> {
  const misplaced: Record<string, string>[] = [{ authorization: secret }, { cookie: `operator=${secret}` }];
  if (secret !== key) misplaced.push({ "x-api-key": secret });
  for (const headers of misplaced) {
    await ask("GET", `/partner/vouchers/${vouchers.lookedUp.code}`, headers);
    await ask("GET", "/ops/queues/jobs/api/queues", headers);
  }
}

async function misplaceInBodies(
  { post, user }: Calls,
  { vouchers: { lookedUp }, offer }: Subjects,
  secret: string,
  token: string,
): Promise<void> {
  for (const body of [
    { externalRef: 5, code: secret },
    { code: { [secret]: secret }, externalRef: "x" },
    { [secret]: "\0", code: lookedUp.code },
    { note: `${secret}\0`, code: lookedUp.code, externalRef: "x" },
    { token: secret.repeat(9), code: lookedUp.code, externalRef: "x" },
    { code: lookedUp.code, externalRef: secret.repeat(9) },
    `{"code":"${secret}","token":"${token}"`,
    `${secret}`,
  ]) {
    for (const path of ["reserve", "redeem", "release"]) await post(`/partner/vouchers/${path}`, body);
    await post(`/products/${offer.productId}/buy`, body, user);
    await post(`/marketplace/listings/${secret}/buy`, body, user);
  }
}

async function misplaceInLines({ url, refusals }: Calls, secret: string): Promise<void> {
  for (const line of [
    `GET /${secret} HTTP/9.9`,
    `GET / HTTP/1.1\r\nbro ken: ${secret}`,
    `GET /${secret} HTTP/1.1\r\nA: ${"x".repeat(20_000)}`,
  ]) {
    const { text, headers } = await exchange(url, `${line}\r\nX-Api-Key: ${secret}\r\nConnection: close\r\n\r\n`);
    refusals.push(text, JSON.stringify(headers));
  }
}

/** Makes calls with invalid keys and tokens, and redeems a voided voucher. */
async function callUnauthenticated({ ask, redeem }: Calls, subjects: Subjects): Promise<void> {
  const { unknown, mistyped, unbound, revoked, vouchers, offer, forged } = subjects;
  for (const wrong of [unknown, mistyped, unbound.key, revoked.key]) {
    await ask("GET", `/partner/vouchers/${vouchers.lookedUp.code}`, { "x-api-key": wrong });
  }
  await ask("POST", `/products/${offer.productId}/claim`, { authorization: `Bearer ${forged}` });
  await redeem({ code: vouchers.voided.code, externalRef: "WORD-REF-3" });
}

/** Causes database errors, whose messages quote the written values, and stops the database. */
async function failInDatabase(
  { ask, post, redeem, by, user }: Calls,
  { vouchers: { lookedUp, poisoned, locked, late }, offer }: Subjects,
  reservation: Reservation,
  database: TcpProxy,
): Promise<void> {
  await db.query("ALTER TABLE redemptions ADD CONSTRAINT poisoned CHECK (external_ref <> 'WORD-REF-POISON') NOT VALID");
  await db.query("ALTER TABLE reservations ADD CONSTRAINT poisoned CHECK (state <> 'Live') NOT VALID");
  const poison = { code: poisoned.code, externalRef: "WORD-REF-POISON", note: "WORD-NOTE-POISON" };
  expect((await redeem(poison)).status).toBe(503);
  expect((await post("/partner/vouchers/reserve", { code: poisoned.code })).status).toBe(500);
  await db.query("ALTER TABLE reservations DROP CONSTRAINT poisoned");
  await whileLocked(db, [locked.id], async () => {
    const cutOff = redeem({ code: locked.code, externalRef: "WORD-REF-CUT", note: "WORD-NOTE-CUT" });
    await untilWaiting(db, 1, "worker");
    database.cut();
    expect((await cutOff).status).toBe(503);
  });
  for (const path of [`/partner/vouchers/${lookedUp.code}`, `/partner/vouchers/${reservation.ticket}`]) {
    expect((await ask("GET", path, by)).status).toBe(503);
  }
  expect((await redeem({ code: late.code, token: reservation.token, externalRef: "WORD-REF-DOWN" })).status).toBe(503);
  expect((await post("/partner/vouchers/reserve", { code: late.code })).status).toBe(503);
  expect((await post(`/products/${offer.productId}/claim`, {}, user)).status).toBe(503);
  await ask("GET", "/readyz");
  database.mend();
  await until(async () => (await ask("GET", "/readyz")).status === 200);
}

const basicOf = (password: string) => Buffer.from(`operator:${password}`).toString("base64");

/** Opens queues and jobs on the operators' dashboard. */
async function visitDashboard({ ask }: Calls, { operator }: Subjects): Promise<string[]> {
  for (const path of ["/ops/operators", "/ops/audit"])
    expect((await ask("GET", path, operator.headers)).status).toBe(200);
  await ask("GET", "/ops/queues", { authorization: `Basic ${basicOf(`${OPS_TOKEN}x`)}` });
  const authorization = `Basic ${basicOf(OPS_TOKEN)}`;
  const dashboard: string[] = [];
  const look = async (path: string) => {
    const { status, text } = await ask("GET", `/ops/queues/jobs/${path}`, { authorization });
    expect(status, path).toBe(200);
    dashboard.push(text);
    return JSON.parse(text);
  };
  for (const queue of ["redeem", "seal", "sweep"]) {
    for (const state of ["latest", "completed", "failed"]) {
      const { queues } = await look(`api/queues?activeQueue=${queue}&status=${state}&page=1&jobsPerPage=100`);
      const jobs = queues.find(({ name }: { name: string }) => name === queue).jobs as { id: string }[];
      for (const { id } of jobs.slice(0, 40)) {
        await look(`api/queues/${queue}/${encodeURIComponent(id)}`);
        await look(`api/queues/${queue}/${encodeURIComponent(id)}/logs`);
      }
    }
  }
  return dashboard;
}

function nameSecrets(subjects: Subjects, { reservation, lateReservation, redemptions, acquisitions }: Answers): void {
  const { key, till, rotated, unbound, revoked, unknown, mistyped, issued, link } = subjects;
  Object.assign(credentials, {
    "an API key": key,
    "another API key": till.key,
    "a rotated API key": rotated.key,
    "an API key without an organization": unbound.key,
    "a revoked API key": revoked.key,
    "an API key that was never made": unknown,
    "a mistyped API key": mistyped,
    "an API key that voucherctl made": subjects.madeKey,
    "a reservation token": reservation.token,
    "a released reservation's token": lateReservation.token,
    "a wrong reservation token": WRONG_TOKEN,
    "a user's token": subjects.userToken,
    "a forged user's token": subjects.forged,
    OPS_TOKEN,
    "an operator's Basic credentials": basicOf(OPS_TOKEN),
    "a named operator's token": subjects.operator.token,
    "a named operator's Basic credentials": subjects.operator.headers.authorization.replace("Basic ", ""),
    "the secret that signs": SIGNING[0] ?? "",
    "the secret that signed before": SIGNING[1] ?? "",
  });
  const password = decodeURIComponent(new URL(servers.databaseUrl).password);
  // If the test server uses trust authentication, there is no password.
  if (password.length >= 8) credentials["the database's password"] = password;
  const acquired = acquisitions.map(({ text }) => JSON.parse(text).voucher.code as string);
  for (const code of [...issued.map((voucher) => voucher.code), ...acquired, link.code]) {
    codes[`the code ${code}`] = code;
    codes[`the code ${code} without hyphens`] = code.replaceAll("-", "");
  }
  for (const { text } of redemptions) {
    const { redeemCode } = JSON.parse(text);
    redeemCodes[`the redeem code ${redeemCode}`] = redeemCode;
    redeemCodes[`the redeem code ${redeemCode} without hyphens`] = redeemCode.replaceAll("-", "");
  }
  Object.assign(words, {
    references: "WORD-REF",
    notes: "WORD-NOTE",
    reasons: "WORD-REASON",
    payments: "WORD-PAYMENT",
    "a ticket": reservation.ticket,
    "another ticket": lateReservation.ticket,
  });
}

function find(text: string | undefined, ...kinds: Secrets[]): string[] {
  const lower = (text ?? "").toLowerCase();
  return kinds.flatMap((kind) =>
    Object.entries(kind).flatMap(([what, secret]) => {
      expect(secret.length, what).toBeGreaterThanOrEqual(8);
      return lower.includes(secret.toLowerCase()) ? [what] : [];
    }),
  );
}
