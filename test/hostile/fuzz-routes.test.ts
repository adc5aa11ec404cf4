import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENDPOINTS } from "../../src/http/endpoints.ts";
import { ASSETS } from "../../src/http/pages/assets.ts";
import type { OUTSIDE } from "../support/check-answer.ts";
import { partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { makeOffer, makeReferral } from "../support/marketplace.ts";
import { exchange } from "../support/raw-http.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { type KeysFile, makeIssuerKey, signUser, writeKeysFile } from "../support/user-tokens.ts";
import { type HostileService, startHostileService } from "./hostile-service.ts";
import { judgeAnswer } from "./judge-answer.ts";
import { encodeRequest, type HostileRequest, type KnownValues, requestsAnywhere, requestsTo } from "./requests.ts";

// Sends random requests to every route. The same seed gives the same requests.
//   FUZZ_RUNS=5000 FUZZ_SEED=7 npx vitest run test/hostile      sends more and other requests

const DEFAULT_RUNS = 50;
/** Requests to each route. */
const runs = Number(process.env.FUZZ_RUNS || DEFAULT_RUNS);
const seed = Number(process.env.FUZZ_SEED || 20_261_121);
/** Far more than the runs take; the rest is for shrinking. Milliseconds. */
const TIME_LIMIT_MS = 60_000 + runs * 500;

const OPS_TOKEN = "the operators' token of the fuzzing";

/** Mounted routes that are not endpoints. The test of the reference checks that there are no others. */
const OUTSIDE_ROUTES: Record<(typeof OUTSIDE)[number]["address"], { path: string; methods: string[] }[]> = {
  "/": [{ path: "/", methods: ["GET"] }],
  "/check": [{ path: "/check", methods: ["GET"] }],
  "/r/:code": [{ path: "/r/:code", methods: ["GET"] }],
  "/assets": [{ path: "/assets/:fileName", methods: ["GET"] }],
  "/log": ["/log/checkpoint", "/log/policy", "/log/tile/*path"].map((path) => ({ path, methods: ["GET"] })),
  "/docs": [{ path: "/docs", methods: ["GET"] }],
  "/openapi.json": [{ path: "/openapi.json", methods: ["GET"] }],
  "/favicon.ico": [{ path: "/favicon.ico", methods: ["GET"] }],
  "/robots.txt": [{ path: "/robots.txt", methods: ["GET"] }],
  "/.well-known/security.txt": [{ path: "/.well-known/security.txt", methods: ["GET"] }],
  "/portal": [
    "",
    "/redemptions",
    "/redemptions.csv",
    "/orders/:externalRef",
    "/orders/:externalRef/receipt",
    "/webhooks",
  ].map((path) => ({
    path: `/portal${path}`,
    methods: ["GET"],
  })),
  "/ops": [
    { path: "/ops", methods: ["GET"] },
    { path: "/ops/vouchers", methods: ["GET"] },
    { path: "/ops/vouchers/:id", methods: ["GET"] },
    { path: "/ops/vouchers/:id/release", methods: ["POST"] },
    { path: "/ops/organizations/:id", methods: ["GET"] },
    ...["batches", "brands", "products", "contracts"].map((each) => ({ path: `/ops/${each}/:id`, methods: ["GET"] })),
    { path: "/ops/runbook", methods: ["GET"] },
    { path: "/ops/queues", methods: ["GET"] },
    { path: "/ops/queues/:page", methods: ["GET"] },
    { path: "/ops/queues/api/queues", methods: ["GET"] },
    { path: "/ops/queues/api/queues/:queue/:job", methods: ["GET", "PUT"] },
    { path: "/ops/queues/static/:file", methods: ["GET"] },
  ],
};

const ROUTES = [
  ...ENDPOINTS.map(({ path, method }) => ({ path: path as string, methods: [method.toUpperCase()] })),
  ...Object.values(OUTSIDE_ROUTES).flat(),
];

let servers: TestServers;
let service: HostileService | undefined;
let keysFile: KeysFile;
let known: KnownValues;

beforeAll(async () => {
  servers = await openTestServers();
  const issuer = await makeIssuerKey();
  keysFile = writeKeysFile(issuer);
  service = await startHostileService(servers, { AUTH_JWKS_URL: keysFile.url, OPS_TOKEN });
  const partner = await makePartner(servers.db);
  const { key } = await makeKey(servers.db, partner.organizationId);
  const readOnly = await makeKey(servers.db, partner.organizationId, { scopes: ["voucher.read"] });
  const unbound = await makeKey(servers.db, null);
  const vouchers = await issueVouchers(servers.db, partner, 40);
  const reservation = (await partnerClient(service.url, key).reserve(vouchers[0]?.code ?? "")).body;
  const offer = await makeOffer(servers.db, 40);
  const link = await makeReferral(servers.db, offer);
  known = {
    keys: [key, key, key, key, readOnly.key, unbound.key],
    names: [
      ...vouchers.map(({ code }) => code),
      ...vouchers.slice(0, 5).map(({ id }) => id),
      reservation.ticket,
      reservation.token,
      offer.listingId,
      offer.productId,
      offer.vouchers[0]?.code ?? "",
      link.code,
      "VoucherInstance",
      "redeem",
      ASSETS.referenceScript.fileName,
    ],
    userTokens: [await signUser(issuer, "hostile-user"), await signUser(issuer, "another-user")],
    signIns: [OPS_TOKEN, readOnly.key].map(
      (password) => `Basic ${Buffer.from(`someone:${password}`).toString("base64")}`,
    ),
  };
  process.stdout.write(`fuzzing with FUZZ_SEED=${seed} FUZZ_RUNS=${runs}\n`);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await service?.stop();
  keysFile.remove();
  await servers.close();
});

async function attack(request: HostileRequest): Promise<void> {
  const reply = await exchange(service?.url ?? "", encodeRequest(request));
  judgeAnswer(request.method, request.target, reply, request.target.startsWith("/ops/queues"));
}

const fuzz = (requests: fc.Arbitrary<HostileRequest>) =>
  fc.assert(fc.asyncProperty(requests, attack), { seed, numRuns: runs, interruptAfterTimeLimit: TIME_LIMIT_MS });

describe("any request gets a documented answer, never a 500, without internals:", () => {
  it.each(ROUTES)("$methods $path", ({ path, methods }) => fuzz(requestsTo(path, methods, known)), 2 * TIME_LIMIT_MS);

  it("any other address", () => fuzz(requestsAnywhere(known)), 2 * TIME_LIMIT_MS);
});

it("the processes log no error, keep their prototypes and exit normally", async () => {
  const ended = await service?.stop();
  service = undefined;
  for (const { stdout, stderr, exitCode } of [ended?.api, ended?.worker].filter((process) => process !== undefined)) {
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    const errors = stdout.split("\n").filter((line) => /"level":"(error|fatal)"|"status":500/.test(line));
    expect(errors).toEqual([]);
  }
  expect(ended).toBeDefined();
});
