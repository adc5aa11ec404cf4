import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { findMissing, type Load, longestGap, startLoad } from "../cluster/load.ts";
import { runNode } from "../support/child-process.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { untilReady } from "./checker.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import { hasPatroni, type PatroniNode, PatroniPostgres } from "./patroni.ts";

const VOUCHERS = 12_000;
/** From the last redemption that the old primary confirmed to the first of the new one. Milliseconds. */
const GAP_MS = 5_000;

let cluster: Cluster | null = null;

afterEach(async () => {
  await cluster?.close();
  cluster = null;
});

interface Stage {
  cluster: Cluster;
  postgres: PatroniPostgres;
  primary: PatroniNode;
  till: PartnerClient;
  load: Load;
}

/** Starts two APIs and two workers on Postgres nodes under Patroni, and partners who redeem. */
async function openStage(synchronous: boolean): Promise<Stage> {
  let postgres: PatroniPostgres | undefined;
  const opened = await openCluster({
    redeemWaitMs: 3_000,
    reservationSeconds: 60,
    openPostgres: async (directory) => {
      postgres = await PatroniPostgres.open(directory, { synchronous });
      return postgres;
    },
  });
  cluster = opened;
  const partner = await makePartner(opened.db);
  const { key } = await makeKey(opened.db, partner.organizationId);
  const vouchers = await issueVouchers(opened.db, partner, VOUCHERS);
  await opened.heal();
  await untilReady(opened);
  const tills = opened.apis.map(({ url }) => partnerClient(url, key));
  const load = await startLoad(opened, partner, tills, { partners: 24, vouchers });
  const database = postgres as PatroniPostgres;
  return {
    cluster: opened,
    postgres: database,
    primary: await database.primary(),
    till: tills[0] as PartnerClient,
    load,
  };
}

const confirmed = ({ answers }: Load): number => answers.filter(({ status }) => status === 200).length;

/** Runs `db check` as an operator does, with the address that the service uses. */
async function check({ postgres, redis }: Cluster): Promise<{ exitCode: number | null; codes: string[] }> {
  const env = { DATABASE_URL: postgres.url, REDIS_URL: redis.url };
  const { exitCode, stdout } = await runNode(["src/cli/main.ts", "db", "check", "--json"], env);
  const { risks } = JSON.parse(stdout) as { risks: { code: string }[] };
  return { exitCode, codes: risks.map(({ code }) => code) };
}

describe.skipIf(!hasPatroni())("Postgres under Patroni, reached through one address", () => {
  it("loses no confirmed redemption when its primary's host dies, with a synchronous standby", async () => {
    const { cluster, postgres, primary, load } = await openStage(true);
    expect(await check(cluster)).toEqual({ exitCode: 0, codes: [] });
    await until(() => confirmed(load) >= 1_500, 90_000);
    const killedAt = Date.now();
    await primary.kill();
    const promoted = await postgres.primary();
    expect(promoted).not.toBe(primary);
    await until(() => confirmed(load) >= 3_000 && Date.now() > killedAt + 10_000, 90_000);
    await load.end();
    const gapMs = longestGap(load.answers, null, killedAt);
    console.log(`synchronous: ${confirmed(load)} confirmed, gap ${gapMs} ms`);
    expect(await findMissing(cluster, load.answers)).toEqual([]);
    expect(gapMs).toBeLessThan(GAP_MS);
    expect(cluster.accidents).toEqual([]);
    await assertInvariants(cluster.db);
    expect(await check(cluster)).toEqual({ exitCode: 0, codes: [] });
  });

  it("loses confirmed redemptions when an asynchronous standby that lags is promoted, of which db check warns", async () => {
    const { cluster, postgres, primary, till, load } = await openStage(false);
    expect(await check(cluster)).toEqual({ exitCode: 1, codes: ["no_synchronous_standby"] });
    await until(() => confirmed(load) >= 300, 90_000);
    primary.replication.jam();
    const before = confirmed(load);
    await until(() => confirmed(load) >= before + 200);
    primary.replication.cut();
    await primary.kill();
    expect(await postgres.primary()).not.toBe(primary);
    await sleep(2_000);
    await load.finish();
    const missing = await findMissing(cluster, load.answers);
    console.log(`asynchronous: ${confirmed(load)} confirmed, ${missing.length} missing`);
    expect(missing.length).toBeGreaterThan(0);
    const { rows } = await cluster.db.query<{ code: string }>(
      "SELECT code FROM vouchers WHERE id = $1",
      missing.slice(0, 1),
    );
    const again = await until(async () => {
      const reply = await till.redeem({ code: rows[0]?.code, externalRef: "another buyer" });
      return reply.status === 503 ? null : reply;
    });
    expect(again).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
  });
});
