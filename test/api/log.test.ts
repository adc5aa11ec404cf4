import { afterAll, beforeAll, expect, it } from "vitest";
import { type Started, startNode } from "../support/child-process.ts";
import { send } from "../support/client.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService } from "../support/service.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { untilStarted } from "../support/until.ts";
import { type IssuerKey, type KeysFile, makeIssuerKey, signUser, writeKeysFile } from "../support/user-tokens.ts";

const SECRET = "a-reservation-token-secret-for-the-log";

interface Line {
  level: string;
  time: string;
  role: string;
  msg: string;
  [field: string]: unknown;
}

let servers: TestServers;
let partner: TestPartner;
let key: { id: string; key: string };
let unbound: { id: string; key: string };
let api: Started;
let worker: Started;
let issuer: IssuerKey;
let keysFile: KeysFile;
/** What the processes wrote, once they have ended. */
let apiLines: Line[];
let workerLines: Line[];
let everything: string;
/** Everything that must be nowhere in the log, by what it is. */
const secrets: Record<string, string> = {};
/** Every request that was sent, by its id, and what its line must say. */
const requests = new Map<string, Record<string, unknown>>();
/** The request whose path cannot be decoded. */
const UNDECODABLE = "log-test-undecodable";

beforeAll(async () => {
  servers = await openTestServers();
  partner = await makePartner(servers.db);
  key = await makeKey(servers.db, partner.organizationId);
  unbound = await makeKey(servers.db, null);
  issuer = await makeIssuerKey();
  keysFile = writeKeysFile(issuer);
  const port = await findSteadyPort();
  const env = {
    DATABASE_URL: servers.databaseUrl,
    REDIS_URL: servers.redisUrl,
    PORT: String(port),
    RESERVATION_TOKEN_SECRET: SECRET,
    AUTH_JWKS_URL: keysFile.url,
  };
  api = startNode(["src/main.ts"], env);
  worker = startNode(["workers/main.ts"], env);
  const url = `http://127.0.0.1:${port}`;
  await untilStarted(() => api.output().includes('"listening"') && worker.output().includes('"working"'));
  await untilStarted(async () => (await send("GET", `${url}/readyz`)).status === 200);
  await use(url);
  for (const { child } of [api, worker]) child.kill("SIGTERM");
  const [apiEnded, workerEnded] = await Promise.all([api.ended, worker.ended]);
  everything = `${apiEnded.stdout}${apiEnded.stderr}${workerEnded.stdout}${workerEnded.stderr}`;
  [apiLines, workerLines] = [parse(apiEnded.stdout + apiEnded.stderr), parse(workerEnded.stdout + workerEnded.stderr)];
  expect([apiEnded.exitCode, workerEnded.exitCode]).toEqual([0, 0]);
});

afterAll(async () => {
  for (const { child } of [api, worker]) child.kill("SIGKILL");
  await endService(servers);
  keysFile.remove();
});

function parse(text: string): Line[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      try {
        return JSON.parse(line);
      } catch {
        throw new Error(`not a JSON line: ${line}`);
      }
    });
}

/** Sends requests of every kind; records what their lines must say and what no line may contain. */
async function use(url: string): Promise<void> {
  const [looked, held, redeemed, refused, imported] = [
    ...(await issueVouchers(servers.db, partner, 4)),
    ...(await issueVouchers(servers.db, partner, 1, { codes: ["IMPORTED/SECRET?77"] })),
  ].map(({ code }) => code);
  if (!looked || !held || !redeemed || !refused || !imported) throw new Error("five vouchers were expected");
  const by = { keyId: key.id, organizationId: partner.organizationId };
  const go = async (
    method: string,
    path: string,
    expected: Record<string, unknown>,
    body?: unknown,
    secret = key.key,
    authorization?: string,
  ) => {
    const requestId = `log-test-${requests.size}`;
    requests.set(requestId, { method, ...expected });
    const options = {
      key: secret,
      headers: { "x-request-id": requestId, ...(authorization && { authorization }) },
      ...(body === undefined ? {} : { body }),
    };
    const reply = await send(method, `${url}${path}`, options);
    expect(reply.status, `${method} ${path}`).toBe(expected.status);
    return reply.body;
  };
  const one = "/partner/vouchers/:codeOrTicket";
  const at = (code: string) => `/partner/vouchers/${encodeURIComponent(code)}`;

  await go("GET", at(looked), { route: one, status: 200, ...by });
  await go("GET", at(imported), { route: one, status: 200, ...by });
  await go("GET", `${at(looked)}/events?limit=1`, { route: `${one}/events`, status: 200, ...by });
  await go("HEAD", at(looked), { route: one, status: 200, ...by });
  const reserve = { route: "/partner/vouchers/reserve", ...by };
  const reservation = await go("POST", "/partner/vouchers/reserve", { ...reserve, status: 200 }, { code: held });
  const redeem = { route: "/partner/vouchers/redeem", ...by };
  const body = {
    ticket: reservation.ticket,
    token: reservation.token,
    externalRef: "LOG-REF-SECRET",
    note: "LOG-NOTE-SECRET",
  };
  const redemption = await go("POST", "/partner/vouchers/redeem", { ...redeem, status: 200 }, body);
  const again = { code: redeemed, externalRef: "LOG-REF-SECRET-2" };
  const second = await go("POST", "/partner/vouchers/redeem", { ...redeem, status: 200 }, again);
  await go("GET", at(reservation.ticket), { route: one, status: 200, ...by });
  const release = { route: "/partner/vouchers/release", ...by };
  await go("POST", "/partner/vouchers/release", { ...release, status: 200 }, { ticket: reservation.ticket });

  // Refusals, with codes and tickets in paths and bodies.
  const unknown = "UNKN-0WNC-0DE7-7777";
  await go("GET", at(unknown), { route: one, status: 404, errorCode: "voucher_not_found", ...by });
  await send("GET", `${url}${at(refused)}%zz`, { key: key.key, headers: { "x-request-id": UNDECODABLE } });
  await go("GET", `/nowhere/${refused}`, { status: 404, errorCode: "not_found" });
  await go("DELETE", at(refused), { route: one, status: 405, errorCode: "method_not_allowed" });
  const used = { ...redeem, status: 409, errorCode: "voucher_used" };
  await go("POST", "/partner/vouchers/redeem", used, { code: held, token: reservation.token, externalRef: "x" });
  const mismatch = { ...redeem, status: 409, errorCode: "token_mismatch" };
  const wrong = { code: refused, token: "LOG-WRONG-TOKEN", externalRef: "x" };
  await go("POST", "/partner/vouchers/redeem", mismatch, wrong);
  const shapeless = { ...redeem, status: 400, errorCode: "invalid_request" };
  await go("POST", "/partner/vouchers/redeem", shapeless, { code: refused, externalRef: 5 });
  const broken = { ...redeem, status: 400, errorCode: "invalid_json" };
  await go("POST", "/partner/vouchers/redeem", broken, `{"code":"${refused}","token":"${reservation.token}"`);
  const wrongKey = `${key.key.slice(0, -1)}${key.key.endsWith("0") ? "1" : "0"}`;
  await go("GET", at(refused), { route: one, status: 401, errorCode: "unknown_key" }, undefined, wrongKey);
  const lost = { route: one, status: 403, errorCode: "key_without_organization", keyId: unbound.id };
  await go("GET", at(refused), lost, undefined, unbound.key);
  const listings = { route: "/marketplace/listings", status: 200 };
  await go("GET", "/marketplace/listings", listings);
  const userToken = await signUser(issuer, "user-of-the-log");
  const bearer = `Bearer ${userToken}`;
  await go("GET", "/marketplace/listings", { ...listings, userId: "user-of-the-log" }, undefined, "", bearer);
  await go("GET", "/healthz", { route: "/healthz", status: 200 });
  const open = "/integrity/events/:entityType/:entityId";
  await go("GET", `/integrity/events/VoucherInstance/${redemption.voucherInstanceId}`, { route: open, status: 200 });
  await send("GET", `${url}/healthz`, { headers: { "x-request-id": "insane id" } });

  Object.assign(secrets, {
    "an API key": key.key,
    "an API key without its prefix": key.key.slice(4),
    "a mistyped API key": wrongKey,
    "the API key without an organization": unbound.key,
    "a reservation token": reservation.token,
    "a wrong token": "LOG-WRONG-TOKEN",
    "a user's token": userToken,
    "a ticket": reservation.ticket,
    "a redeem code": redemption.redeemCode,
    "another redeem code": second.redeemCode,
    "the reservation secret": SECRET,
    "a note": "LOG-NOTE-SECRET",
    "the database's address": servers.databaseUrl,
    "an imported code": imported,
    "an imported code as it was sent": encodeURIComponent(imported),
    "an unknown code": unknown,
  });
  for (const [index, code] of [looked, held, redeemed, refused].entries()) {
    secrets[`voucher code ${index}`] = code;
    secrets[`voucher code ${index} without hyphens`] = code.replaceAll("-", "");
  }
}

it("the log of the API and a worker is one JSON object a line on both processes, each with time, level, role and message", () => {
  expect(apiLines.length).toBeGreaterThan(requests.size);
  expect(workerLines.length).toBeGreaterThan(0);
  for (const line of [...apiLines, ...workerLines]) {
    expect(line).toMatchObject({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      level: expect.stringMatching(/^(info|warn|error)$/),
      msg: expect.any(String),
    });
  }
  expect(new Set(apiLines.map(({ role }) => role))).toEqual(new Set(["api"]));
  expect(new Set(workerLines.map(({ role }) => role))).toEqual(new Set(["worker"]));
});

it("the log of the API and a worker has exactly one line a request, with method, route pattern, status, ids and duration", () => {
  expect(requests.size).toBeGreaterThanOrEqual(20);
  for (const [requestId, expected] of requests) {
    const lines = apiLines.filter((line) => line.requestId === requestId);
    expect(lines, requestId).toHaveLength(1);
    expect(lines[0]).toMatchObject({ ...expected, requestId, level: "info", msg: "request" });
    expect(lines[0]?.durationMs, requestId).toBeTypeOf("number");
    expect(lines[0]?.durationMs).toBeGreaterThan(0);
    for (const absent of ["keyId", "organizationId", "userId", "errorCode", "route"]) {
      if (!(absent in expected)) {
        expect(lines[0]?.[absent], `${absent} of ${requestId}`).toBeUndefined();
      }
    }
  }
});

it("the log of the API and a worker tells route and caller of a request whose path cannot be decoded, like of every other", () => {
  const lines = apiLines.filter(({ requestId }) => requestId === UNDECODABLE);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({
    method: "GET",
    route: "/partner/vouchers/:codeOrTicket",
    status: 404,
    errorCode: "voucher_not_found",
    keyId: key.id,
    organizationId: partner.organizationId,
  });
});

it("the log of the API and a worker gives a request whose own id is not sane another one", () => {
  expect(everything).not.toContain("insane id");
  const probes = apiLines.filter((line) => line.route === "/healthz" && line.requestId !== undefined);
  expect(probes.length).toBeGreaterThanOrEqual(2);
});

it("the log of the API and a worker contains no key, token, ticket, code, note or secret", () => {
  expect(Object.keys(secrets).length).toBeGreaterThan(20);
  const found = Object.entries(secrets).filter(([, secret]) => everything.toLowerCase().includes(secret.toLowerCase()));
  expect(found).toEqual([]);
});

it("the log of the API and a worker tells that each process listened or worked, drained at SIGTERM and ended in order", () => {
  for (const [lines, first] of [
    [apiLines, "listening"],
    [workerLines, "working"],
  ] as const) {
    // A sweep that is under way at SIGTERM is finished, and reported, while the worker drains.
    const told = lines.map(({ msg }) => msg).filter((msg) => msg !== "sweep finished");
    expect(told).toContain(first);
    expect(told.slice(-2)).toEqual(["draining", "drained"]);
  }
  expect([...apiLines, ...workerLines].filter(({ level }) => level === "error")).toEqual([]);
});
