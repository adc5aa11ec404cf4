import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { IssuedVoucher } from "../../../src/acts/issue-batch.ts";
import { insertProduct } from "../../../src/core/catalog/db/catalog.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { partnerClient } from "../../support/client.ts";
import { expectFairRound } from "../../support/fair-rounds.ts";
import { OPEN } from "../../support/marketplace.ts";
import { issueTestBatch, issueVouchers, type TestPartner } from "../../support/supply.ts";
import { untilStarted } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { signUser, writeKeysFile } from "../../support/user-tokens.ts";
import { type HostileService, startHostileService } from "./hostile-service.ts";

const USERS = 1_000;
const SUPPLY = 100;
/** The pause between the partner's redeems. Milliseconds. */
const REDEEM_EVERY_MS = 20;
const QUIET_MS = 1_000;
/** A percentile below this passes, even if redeems are much faster without load. Milliseconds. */
const FLOOR_MS = 60;
/**
 * Redeems without load take only 10 to 20 milliseconds, so even on two idle cores other work spoils four rounds in
 * five.
 */
const ROUNDS_MAX = 30;

const { servers, partner, stranger, keys, issuer } = useService({ apis: [], workers: [] });
let service: HostileService;
let redeem: ReturnType<typeof partnerClient>["redeem"];
let unused: IssuedVoucher[];
let tokens: string[];

beforeAll(async () => {
  const keysFile = writeKeysFile(issuer);
  servers.onClose(async () => keysFile.remove());
  service = await startHostileService(servers, { AUTH_JWKS_URL: keysFile.url });
  ({ redeem } = partnerClient(service.url, keys.foreign.key));
  unused = await issueVouchers(servers.db, stranger, 5_000);
  tokens = await Promise.all(Array.from({ length: USERS }, (_, n) => signUser(issuer, `user-${n}`)));
  // Opens the service's connections.
  await untilStarted(async () => (await redeemUntil(sleep(1_000))).length > 0);
});

afterAll(() => service.stop());

let refs = 0;

it("redeems take at most three times as long during another partner's rush of claims", async () => {
  const measure = async () => {
    const claimAll = await prepareDrop(partner);
    const quiet = p99(await redeemUntil(sleep(QUIET_MS)));
    const drop = claimAll();
    const round = { quiet, drop: p99(await redeemUntil(drop)) };
    expect(await drop).toEqual({ 200: SUPPLY, 409: USERS - SUPPLY });
    return round;
  };
  await expectFairRound(
    ROUNDS_MAX,
    measure,
    ({ quiet, drop }) => quiet < Number.POSITIVE_INFINITY && drop <= Math.max(3 * quiet, FLOOR_MS),
  );
});

/** Redeems vouchers at a steady rate until `end`. Returns the sorted durations. Milliseconds. */
async function redeemUntil(end: Promise<unknown>): Promise<number[]> {
  const redeems: Promise<number>[] = [];
  let ended = false;
  void end.then(() => {
    ended = true;
  });
  while (!ended) {
    const startedAt = performance.now();
    refs += 1;
    redeems.push(
      // A busy machine may cause a timeout, which counts as infinitely slow.
      redeem({ code: unused.pop()?.code, externalRef: `ref-${refs}` }).then(({ status }) =>
        status === 200 ? performance.now() - startedAt : Number.POSITIVE_INFINITY,
      ),
    );
    await sleep(REDEEM_EVERY_MS);
  }
  await end;
  return (await Promise.all(redeems)).toSorted((a, b) => a - b);
}

/**
 * Offers vouchers of a new product to users, and opens a connection for each. The returned function sends all claims at
 * once, and counts the answers by status.
 */
async function prepareDrop({ brandId }: TestPartner): Promise<() => Promise<Record<string, number>>> {
  const productId = newId("prd");
  await insertProduct(servers.db, {
    id: productId,
    brandId,
    key: productId.slice(-10),
    name: "Pass",
    type: "Subscription" as const,
    retailPriceUsd: 50,
    priceUsd: 40.25,
    benefitMonths: 6,
    usageUnitLabel: "visit",
  });
  await issueTestBatch(servers.db, { productId }, SUPPLY, { windows: OPEN });
  const { hostname, port } = new URL(service.url);
  const sockets = await Promise.all(
    tokens.map(async () => {
      const socket = connect(Number(port), hostname);
      await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return socket.setEncoding("latin1");
    }),
  );
  const head = `POST /products/${productId}/claim HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n`;
  const claims = tokens.map((token) => `${head}Authorization: Bearer ${token}\r\n\r\n{}`);
  return async () => {
    const counts: Record<string, number> = {};
    const answers = sockets.map(
      (socket, n) =>
        new Promise<void>((resolve) => {
          socket.once("data", (text: string) => {
            const status = text.slice(9, 12);
            counts[status] = (counts[status] ?? 0) + 1;
            resolve();
          });
          socket.write(claims[n] ?? "");
        }),
    );
    await Promise.all(answers);
    for (const socket of sockets) socket.destroy();
    return counts;
  };
}

const p99 = (sorted: readonly number[]) => sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN;
