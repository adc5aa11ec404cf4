import { afterAll, beforeAll, expect, it } from "vitest";
import { keptRequestId } from "../../src/core/processes/observe-requests.ts";
import { nameTokenSecrets } from "../../src/core/reserve/reservation-token.ts";
import { type Started, startNode } from "../support/child-process.ts";
import { send } from "../support/client.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { issueVouchers, makeKey } from "../support/supply.ts";
import { untilStarted } from "../support/until.ts";
import { useService } from "../support/use-service.ts";
import { signUser, writeKeysFile } from "../support/user-tokens.ts";

const SECRET = "a-reservation-token-secret-for-the-log";
/** The request whose path cannot be decoded. */
const UNDECODABLE = "log-test-undecodable";

interface Line {
  level: string;
  time: string;
  role: string;
  msg: string;
  [field: string]: unknown;
}

const { servers, partner, keys, issuer } = useService({ apis: [], workers: [] });
let processes: [api: Started, worker: Started];
/** The processes' output after their end. */
let [apiLines, workerLines]: [Line[], Line[]] = [[], []];
let everything = "";
/** The texts that no log line may contain. */
const secrets: string[] = [SECRET];
/** All requests by id, with the expected content of their log lines. */
const requests = new Map<string, Record<string, unknown>>();

beforeAll(async () => {
  const keysFile = writeKeysFile(issuer);
  const port = await findSteadyPort();
  const env = {
    DATABASE_URL: servers.databaseUrl,
    REDIS_URL: servers.redisUrl,
    PORT: String(port),
    RESERVATION_TOKEN_SECRET: SECRET,
    AUTH_JWKS_URL: keysFile.url,
  };
  const [api, worker] = [startNode(["src/main.ts"], env), startNode(["workers/main.ts"], env)];
  processes = [api, worker];
  const url = `http://127.0.0.1:${port}`;
  await untilStarted(() => api.output().includes('"listening"') && worker.output().includes('"working"'));
  await untilStarted(async () => (await send("GET", `${url}/readyz`)).status === 200);
  await use(url);
  for (const { child } of processes) child.kill("SIGTERM");
  const ended = await Promise.all(processes.map((each) => each.ended));
  expect(ended.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
  const outputs = ended.map(({ stdout, stderr }) => stdout + stderr);
  everything = outputs.join("");
  [apiLines, workerLines] = outputs.map(parse) as [Line[], Line[]];
  keysFile.remove();
});

afterAll(() => {
  for (const { child } of processes) child.kill("SIGKILL");
});

it("the log of the API and worker has one JSON object per line, with time, level, role and message", () => {
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

it("the log of the API and worker has one line per request, with route, status, ids and duration", () => {
  expect(requests.size).toBeGreaterThanOrEqual(20);
  for (const [requestId, expected] of requests) {
    const logged = keptRequestId(nameTokenSecrets([SECRET]), requestId);
    const lines = apiLines.filter((line) => line.requestId === logged);
    expect(lines, requestId).toHaveLength(1);
    expect(lines[0]).toMatchObject({ ...expected, level: "info", msg: "request" });
    expect(lines[0]?.durationMs, requestId).toBeTypeOf("number");
    expect(lines[0]?.durationMs).toBeGreaterThan(0);
    for (const absent of ["keyId", "organizationId", "errorCode", "route"]) {
      if (!(absent in expected)) {
        expect(lines[0]?.[absent], `${absent} of ${requestId}`).toBeUndefined();
      }
    }
  }
});

it("the log of the API and worker contains new ids of requests instead of callers' request ids", () => {
  expect(everything).not.toContain("insane id");
  for (const requestId of requests.keys()) expect(everything).not.toContain(requestId);
  const probes = apiLines.filter((line) => line.route === "/healthz" && line.requestId !== undefined);
  expect(probes.length).toBeGreaterThanOrEqual(2);
});

it("the log of the API and worker contains no key, token, ticket, code, note or secret", () => {
  const written = everything.toLowerCase();
  expect(secrets.length).toBeGreaterThan(20);
  expect(secrets.filter((secret) => written.includes(secret.toLowerCase()))).toEqual([]);
});

it("the log of the API and worker says that each process started, and drained after SIGTERM", () => {
  for (const [lines, first] of [
    [apiLines, "listening"],
    [workerLines, "working"],
  ] as const) {
    // A sweep that is running at SIGTERM is finished and reported while the worker drains.
    const told = lines.map(({ msg }) => msg).filter((msg) => msg !== "sweep finished");
    expect(told).toContain(first);
    expect(told.slice(-2)).toEqual(["draining", "drained"]);
  }
  // The process has no webhook secret and no log key.
  expect(workerLines.find(({ msg }) => msg === "working")?.queues).toEqual(["redeem", "seal", "sweep"]);
  expect([...apiLines, ...workerLines].filter(({ level }) => level === "error")).toEqual([]);
});

function parse(text: string): Line[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => {
    try {
      return JSON.parse(line);
    } catch {
      throw new Error(`not a JSON line: ${line}`);
    }
  });
}

/** Returns a function that sends a request, by default with this key, and records the expected content of its line. */
function recordCalls(url: string, key: string) {
  return async (
    method: string,
    path: string,
    expected: { status: number; [field: string]: unknown },
    body?: unknown,
    { as = key, authorization }: { as?: string; authorization?: string } = {},
  ) => {
    const requestId = `log-test-${requests.size}`;
    // The log line names a key that has worked in this process, so that operators find all of the key's calls.
    const known = { keyId: keys.till.id, organizationId: partner.organizationId };
    requests.set(requestId, { method, ...(as === key && known), ...expected });
    const headers = { "x-request-id": requestId, ...(authorization && { authorization }) };
    const options = { key: as, headers, ...(body !== undefined && { body }) };
    const reply = await send(method, `${url}${path}`, options);
    expect(reply.status, `${method} ${path}`).toBe(expected.status);
    return reply.body;
  };
}

/** Sends requests of every kind. Records the expected content of their lines, and texts that no line may contain. */
async function use(url: string): Promise<void> {
  const { id: keyId, key } = keys.till;
  const unbound = await makeKey(servers.db, null);
  const issued = await issueVouchers(servers.db, partner, 4);
  const [looked, held, redeemed, refused] = issued.map(({ code }) => code) as [string, string, string, string];
  const imported = "IMPORTED/SECRET?77";
  await issueVouchers(servers.db, partner, 1, { codes: [imported] });
  const by = { keyId, organizationId: partner.organizationId };
  const go = recordCalls(url, key);
  const route = "/partner/vouchers/:codeOrTicket";
  const at = (code: string) => `/partner/vouchers/${encodeURIComponent(code)}`;
  const post = (name: string, status: number, body: unknown, errorCode?: string) => {
    const path = `/partner/vouchers/${name}`;
    return go("POST", path, { route: path, status, ...by, ...(errorCode && { errorCode }) }, body);
  };

  for (const code of [looked, imported]) await go("GET", at(code), { route, status: 200, ...by });
  await go("GET", `${at(looked)}/events?limit=1`, { route: `${route}/events`, status: 200, ...by });
  await go("HEAD", at(looked), { route, status: 200, ...by });
  const { ticket, token } = await post("reserve", 200, { code: held });
  const order = { externalRef: "LOG-REF-SECRET", note: "LOG-NOTE-SECRET" };
  const { redeemCode, voucherInstanceId } = await post("redeem", 200, { ticket, token, ...order });
  const second = await post("redeem", 200, { code: redeemed, externalRef: "LOG-REF-SECRET-2" });
  await go("GET", at(ticket), { route, status: 200, ...by });
  await post("release", 200, { ticket });

  // Refusals, with codes and tickets in paths and bodies.
  const unknown = "UNKN-0WNC-0DE7-7777";
  await go("GET", at(unknown), { route, status: 404, errorCode: "voucher_not_found", ...by });
  await send("GET", `${url}${at(refused)}%zz`, { key, headers: { "x-request-id": UNDECODABLE } });
  requests.set(UNDECODABLE, { method: "GET", route, status: 404, errorCode: "voucher_not_found", ...by });
  await go("GET", `/nowhere/${refused}`, { status: 404, errorCode: "not_found" });
  await go("DELETE", at(refused), { route, status: 405, errorCode: "method_not_allowed" });
  await post("redeem", 409, { code: held, token, externalRef: "x" }, "voucher_used");
  await post("redeem", 409, { code: refused, token: "LOG-WRONG-TOKEN", externalRef: "x" }, "token_mismatch");
  await post("redeem", 400, { code: refused, externalRef: 5 }, "invalid_request");
  await post("redeem", 400, `{"code":"${refused}","token":"${token}"`, "invalid_json");
  const as = `${key.slice(0, -1)}${key.endsWith("0") ? "1" : "0"}`;
  await go("GET", at(refused), { route, status: 401, errorCode: "unknown_key" }, undefined, { as });
  const lost = { route, status: 403, errorCode: "key_without_organization", keyId: unbound.id };
  await go("GET", at(refused), lost, undefined, { as: unbound.key });
  const listings = { route: "/marketplace/listings", status: 200 };
  await go("GET", "/marketplace/listings", listings);
  const userToken = await signUser(issuer, "user-of-the-log");
  const signedIn = { as: "", authorization: `Bearer ${userToken}` };
  await go("GET", "/marketplace/listings", listings, undefined, signedIn);
  await go("GET", "/healthz", { route: "/healthz", status: 200 });
  const open = { route: "/integrity/events/:entityType/:entityId", status: 200 };
  await go("GET", `/integrity/events/VoucherInstance/${voucherInstanceId}`, open);
  await send("GET", `${url}/healthz`, { headers: { "x-request-id": "insane id" } });

  const codes = [looked, held, redeemed, refused];
  secrets.push(key, key.slice(4), as, unbound.key, token, "LOG-WRONG-TOKEN", userToken, ticket, redeemCode);
  secrets.push(second.redeemCode, order.note, servers.databaseUrl, imported, encodeURIComponent(imported), unknown);
  secrets.push("user-of-the-log", ...codes, ...codes.map((code) => code.replaceAll("-", "")));
}
