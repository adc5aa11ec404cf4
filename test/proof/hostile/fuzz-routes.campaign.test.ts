import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ASSETS } from "../../../src/pages/assets.ts";
import { ALL_ERRORS } from "../../support/all-errors.ts";
import { checkAnswer, isOutside } from "../../support/check-answer.ts";
import { partnerClient } from "../../support/client.ts";
import { makeOffer, makeReferral } from "../../support/marketplace.ts";
import { exchange, type RawReply } from "../../support/raw-http.ts";
import { issueVouchers, makeKey } from "../../support/supply.ts";
import { useService } from "../../support/use-service.ts";
import { signUser, writeKeysFile } from "../../support/user-tokens.ts";
import { type HostileService, startHostileService } from "./hostile-service.ts";
import { encodeRequest, type HostileRequest, type KnownValues, requestsAnywhere, requestsTo } from "./requests.ts";
import { ROUTES } from "./routes.ts";

// Sends random requests to every route. The same seed gives the same requests.
//   FUZZ_RUNS=5000 FUZZ_SEED=7 npx vitest run test/proof/hostile      sends more and other requests

/** Requests to each route. */
const runs = Number(process.env.FUZZ_RUNS || 50);
const seed = Number(process.env.FUZZ_SEED || 20_261_121);
/** Far longer than the runs take, so that fast-check has time to shrink a failure. Milliseconds. */
const TIME_LIMIT_MS = 60_000 + runs * 500;

const OPS_TOKEN = "the operators' token of the fuzzing";

const { servers, db, partner, keys, issuer } = useService({ apis: [], workers: [] });
let service: HostileService | undefined;
let known: KnownValues;

beforeAll(async () => {
  const keysFile = writeKeysFile(issuer);
  servers.onClose(async () => keysFile.remove());
  service = await startHostileService(servers, { AUTH_JWKS_URL: keysFile.url, OPS_TOKEN });
  const { key } = keys.till;
  const readOnly = await makeKey(db, partner.organizationId, { scopes: ["voucher.read"] });
  const unbound = await makeKey(db, null);
  const vouchers = await issueVouchers(db, partner, 40);
  const { ticket, token } = (await partnerClient(service.url, key).reserve(vouchers[0]?.code ?? "")).body;
  const offer = await makeOffer(db, 40);
  const link = await makeReferral(db, offer);
  const userTokens = [await signUser(issuer, "hostile-user"), await signUser(issuer, "another-user")];
  const basic = (password: string) => `Basic ${Buffer.from(`someone:${password}`).toString("base64")}`;
  known = {
    keys: [key, key, key, key, readOnly.key, unbound.key],
    names: [
      ...[...vouchers.map(({ code }) => code), ...vouchers.slice(0, 5).map(({ id }) => id), ticket, token],
      ...[offer.listingId, offer.productId, offer.vouchers[0]?.code ?? "", link.code],
      ...["VoucherInstance", "redeem", ASSETS.referenceScript.fileName],
    ],
    signIns: [...userTokens.map((one) => `Bearer ${one}`), basic(OPS_TOKEN), basic(readOnly.key)],
  };
  process.stdout.write(`fuzzing with FUZZ_SEED=${seed} FUZZ_RUNS=${runs}\n`);
});

afterAll(() => service?.stop());

/** Matches internals of the service, which no answer may show. */
const INTERNALS = /node_modules|node:internal|(?:^|\\n)\s+at .+:\d+:\d+|\/src\/|ECONNREFUSED|SELECT .+ FROM/m;

it.each(ROUTES)(
  "any request gets a documented answer without internals, and never a 500: %s %s",
  (method, path) => fuzz(requestsTo(path, method, known)),
  2 * TIME_LIMIT_MS,
);

it(
  "any request to an unknown address gets a documented answer without internals, and never a 500",
  () => fuzz(requestsAnywhere(known)),
  2 * TIME_LIMIT_MS,
);

it("random requests cause no logged error, leave prototypes unchanged and let processes exit normally", async () => {
  const ended = await service?.stop();
  service = undefined;
  for (const { stdout, stderr, exitCode } of [ended?.api, ended?.worker].filter((process) => process !== undefined)) {
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout.split("\n").filter((line) => /"level":"(error|fatal)"|"status":500/.test(line))).toEqual([]);
  }
  expect(ended).toBeDefined();
});

/**
 * Checks the rules for every answer: no 500, a documented status, the common error body, no internals.
 * @throws Error with the broken rule.
 */
function judge(method: string, target: string, { status, headers, text }: RawReply): void {
  const fail = (what: string) => {
    throw new Error(`${what}: ${status} ${JSON.stringify(headers)} ${text.slice(0, 600)}`);
  };
  if (!Number.isInteger(status)) fail("no HTTP answer");
  if (status >= 500 && status !== 503) fail("an internal error");
  if (headers["x-request-id"] === undefined) fail("the request id is missing");
  const isPage = headers["content-type"]?.startsWith("text/html") ?? false;
  const isBodiless = method === "HEAD" || text === "";
  if (status >= 400 && !isBodiless) {
    if (INTERNALS.test(text)) fail("the answer shows internals");
    if (isPage && !/^<!doctype html>/i.test(text)) fail("the refusal is not a page");
    // The operators' dashboard is a library, which has error bodies of its own.
    if (!isPage && !target.startsWith("/ops/queues")) {
      const body = JSON.parse(text);
      if (ALL_ERRORS.get(String(body.code))?.status !== status) fail("the code belongs to another status");
      if (typeof body.error !== "string" || body.requestId !== headers["x-request-id"]) fail("it is no error body");
    }
  }
  const pathname = target.split("?")[0] ?? "";
  // Only if all URL parsers agree on the path, compares the answer with the API reference.
  if (!pathname.startsWith("/") || !URL.canParse(`http://x${target}`)) return;
  const address = pathname.replace(/\/+$/, "") || "/";
  if (new URL(`http://x${target}`).pathname !== pathname || isOutside(address) || isPage) return;
  const body = isBodiless ? null : JSON.parse(text);
  checkAnswer(method, `http://x${target}`, { status, headers: new Headers(headers), body });
}

async function attack(request: HostileRequest): Promise<void> {
  judge(request.method, request.target, await exchange(service?.url ?? "", encodeRequest(request)));
}

const fuzz = (requests: fc.Arbitrary<HostileRequest>) =>
  fc.assert(fc.asyncProperty(requests, attack), { seed, numRuns: runs, interruptAfterTimeLimit: TIME_LIMIT_MS });
