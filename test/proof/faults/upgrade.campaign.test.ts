import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { expect, it, onTestFinished, vi } from "vitest";
import { makeOffer } from "../../support/marketplace.ts";
import { until, untilStarted } from "../../support/until.ts";
import { makeIssuerKey, writeKeysFile } from "../../support/user-tokens.ts";
import { checkEverything } from "./checker.ts";
import { type ApiProcess, openCluster } from "./cluster.ts";
import { eraseUntilDone } from "./exchange.ts";
import { describeViolation, History } from "./history.ts";
import { RESERVATION_SECONDS, startPartners, supplyOrganization } from "./organizations.ts";
import { type CheckoutName, untilErasedForm, workAsShopper } from "./partner.ts";
import { isConfirmed } from "./rules.ts";
import { SeededRandom } from "./seeded-random.ts";

vi.setConfig({ testTimeout: 300_000 });

/** The last commit of release 0.1.0. */
const RELEASE = "7bdf4c37";
const isThere = spawnSync("git", ["cat-file", "-e", `${RELEASE}^{commit}`]).status === 0;
/** Calls whose endpoint or cursor format release 0.1.0 lacks, and erasures, which fail while 0.1.0 runs. */
const ACTS: CheckoutName[] = ["voidVoucher", "voidContested", "suspendVoucher", "extendVoucher", "issueAndVoid"];
const NEWER: CheckoutName[] = [...ACTS, "settle", "eraseOrder"];
/** A step of the upgrade lasts until this many requests are confirmed. */
const CONFIRMED_EACH = 40;
const LOOPS = 4;

it.skipIf(!isThere)(
  "partners and users get true answers while processes of 0.1.0 are replaced one by one",
  async () => {
    const { cluster, old, history, apis, callers, end } = await startUpgrade();
    const [api] = cluster.apis as [ApiProcess];
    const [worker] = cluster.workers;
    const confirmed = () => history.exchanges.filter(isConfirmed).length;
    const goOn = async () => {
      const before = confirmed();
      await until(() => confirmed() > before + CONFIRMED_EACH);
    };
    await goOn();
    const erased = eraseFirst(cluster.db, history);
    worker?.start();
    await untilStarted(() => worker?.hasLogged("working"));
    await goOn();
    await old.worker.terminate();
    await goOn();
    api.process.start();
    await untilStarted(async () => (await fetch(`${api.url}/readyz`).catch(() => null))?.ok);
    apis.push(api);
    await goOn();
    // Erasures were tried, but the service refuses them while a process of 0.1.0 runs.
    expect(history.of("erase").length).toBeGreaterThan(0);
    expect(history.of("erase").filter(isConfirmed)).toEqual([]);
    apis.shift();
    await goOn();
    await old.api.process.terminate();
    await erased;
    await goOn();
    end();
    await Promise.all(callers);
    const violations = await checkEverything({ ...cluster, apis }, history, cluster.postgres.clock);
    expect(violations.map(describeViolation)).toEqual([]);
  },
);

/** Starts processes of 0.1.0 on the migrated database, as after the second step of an upgrade, and callers. */
async function startUpgrade() {
  const root = installRelease();
  const issuer = await makeIssuerKey();
  const keys = writeKeysFile(issuer);
  const cluster = await openCluster({
    redeemWaitMs: 3_000,
    reservationSeconds: RESERVATION_SECONDS,
    workers: [{}],
    env: { AUTH_JWKS_URL: keys.url, LOG_LEVEL: "info" },
  });
  onTestFinished(async () => {
    await cluster.close();
    keys.remove();
    rmSync(root, { recursive: true });
  });
  const old = await cluster.addRelease("release-0.1.0", root);
  const organization = await supplyOrganization(cluster.db, 2_000);
  const foreign = await supplyOrganization(cluster.db, 20);
  const offer = { ...(await makeOffer(cluster.db, 200)), supply: 200 };
  const [history, random, over] = [new History(), new SeededRandom(50), new AbortController()];
  onTestFinished(() => over.abort());
  old.api.process.start();
  old.worker.start();
  await untilStarted(async () => (await fetch(`${old.api.url}/readyz`).catch(() => null))?.ok);
  const apis = [old.api];
  let isOver = false;
  const at = { random, history, signal: over.signal };
  const goesOn = () => !isOver;
  const shopper = { ...at, name: "shopper", random: random.fork("shopper"), apis, issuer, currentOffer: () => offer };
  const partner = { ...at, name: "partner", without: NEWER };
  const callers = [
    ...startPartners({ apis, db: cluster.db }, organization, foreign, LOOPS, partner, goesOn),
    workAsShopper(shopper, goesOn),
  ];
  for (const caller of callers) caller.catch(() => undefined);
  const end = () => {
    isOver = true;
  };
  return { cluster, old, history, apis, callers, end };
}

/** Erases the first redemption's reference as an operator. This succeeds only when no process of 0.1.0 runs. */
async function eraseFirst(db: pg.Pool, history: History): Promise<void> {
  const first = history.of("redeem").find(isConfirmed);
  if (first === undefined) throw new Error("nothing was redeemed");
  const { key, externalRef } = first.ask;
  const form = await untilErasedForm(db, key.organizationId, externalRef);
  const signal = AbortSignal.timeout(240_000);
  const options = { random: new SeededRandom(51), history, signal, db };
  await eraseUntilDone(options, { operation: "erase", key, externalRef, form });
}

/** Installs release 0.1.0 in its own folder, with its own dependencies. */
function installRelease(): string {
  const root = mkdtempSync(join(tmpdir(), "voucher-release-"));
  const archive = execFileSync("git", ["archive", RELEASE], { maxBuffer: 2 ** 30 });
  execFileSync("tar", ["-x", "-C", root], { input: archive });
  execFileSync("npm", ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: root });
  return root;
}
