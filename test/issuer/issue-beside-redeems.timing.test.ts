import { afterAll, beforeAll, expect, it } from "vitest";
import { type HostileService, startHostileService } from "../proof/hostile/hostile-service.ts";
import { partnerClient, send } from "../support/client.ts";
import { expectFairRound } from "../support/fair-rounds.ts";
import { issueVouchers, makeKey } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { servers, db, keys, partner, stranger } = useService({ apis: [], workers: [] });

/** The maximum number of vouchers that the back office can issue in one call. */
const ISSUED = 100_000;
/** The number of redeems in each measurement, and the pause after each redeem, as at tills. */
const REDEEMS = 300;
const PAUSE_MS = 10;
/** Maximum factor of slower redeems during the issue, and the difference that counts as noise, in milliseconds. */
const SLOWER_MAX = 2;
const NOISE_MS = 40;
const ROUNDS_MAX = 3;

let service: HostileService;

beforeAll(async () => {
  service = await startHostileService(servers, { ISSUER_API: "true", OPS_DATABASE_URL: servers.adminUrl });
});
afterAll(() => service.stop());

it("the p99 latency of redeems at most doubles while 100 000 vouchers are issued", { timeout: 300_000 }, async () => {
  const { key } = await makeKey(db, stranger.organizationId, { scopes: ["voucher.issue"] });
  await measureRedeems(await issueCodes());
  let round = 0;
  const measure = async () => {
    const [quiet, beside] = [await issueCodes(), await issueCodes()];
    const quietMs = await measureRedeems(quiet);
    return { quietMs, besideMs: await measureBesideIssue(key, `large ${++round}`, beside) };
  };
  await expectFairRound(
    ROUNDS_MAX,
    measure,
    ({ quietMs, besideMs }) => besideMs <= Math.max(SLOWER_MAX * quietMs, NOISE_MS),
  );
});

const issueCodes = async () => (await issueVouchers(db, partner, REDEEMS)).map(({ code }) => code);

async function measureBesideIssue(key: string, issueRef: string, codes: readonly string[]): Promise<number> {
  const body = { issueRef, count: ISSUED, validUntil: "2099-12-31" };
  let isIssuing = true;
  const issue = send("POST", `${service.url}/issuer/products/${stranger.productId}/batches`, { key, body }).finally(
    () => {
      isIssuing = false;
    },
  );
  const besideMs = await measureRedeems(codes, () => isIssuing);
  expect(await issue).toMatchObject({ status: 200, body: { count: ISSUED, alreadyIssued: false } });
  return besideMs;
}

/** Redeems vouchers one by one while `goOn` returns true. Returns the 99th percentile of the durations. */
async function measureRedeems(codes: readonly string[], goOn = () => true): Promise<number> {
  const till = partnerClient(service.url, keys.till.key);
  const durations: number[] = [];
  // The service closes idle connections between two measurements. This call opens a new one.
  await till.lookUp("none").catch(() => null);
  for (const code of codes) {
    if (!goOn()) break;
    const startedAt = performance.now();
    const { status } = await till.redeem({ code, externalRef: `order ${code}` });
    durations.push(performance.now() - startedAt);
    expect(status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  expect(durations.length).toBeGreaterThan(100);
  return durations.toSorted((a, b) => a - b)[Math.floor(durations.length * 0.99)] ?? 0;
}
