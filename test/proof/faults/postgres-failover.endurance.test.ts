import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { runNode, startNode } from "../../support/child-process.ts";
import { type PartnerClient, partnerClient } from "../../support/client.ts";
import { assertInvariants } from "../../support/invariants.ts";
import { issueVouchers, makeKey, makePartner, type TestPartner } from "../../support/supply.ts";
import { until, untilStarted } from "../../support/until.ts";
import { findMissing, type Load, longestGap, since, startLoad } from "../cluster/load.ts";
import { untilReady } from "./checker.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import { hasPatroni, PATRONI_TIMES, type PatroniNode, PatroniPostgres } from "./patroni.ts";

/** Maximum time without a confirmed redemption. Milliseconds. */
const GAP_MS = 5_000;
/** How long a crashed leader keeps its lock, so that no other node takes over. Milliseconds. */
const LOCK_MS = PATRONI_TIMES.ttl * 1_000;

/** Whether to run every failover, or only half of them, which takes two minutes less. */
const ALL = process.env.FAILOVER === "all";

let cluster: Cluster;
let postgres: PatroniPostgres;
let partner: TestPartner;
let tills: PartnerClient[];

describe.skipIf(!hasPatroni())("Postgres under Patroni, reached through one address", () => {
  beforeAll(async () => {
    cluster = await openCluster({
      redeemWaitMs: 3_000,
      reservationSeconds: 60,
      openPostgres: async (directory, logs) => {
        postgres = await PatroniPostgres.open(directory, logs);
        return postgres;
      },
    });
    partner = await makePartner(cluster.db);
    const { key } = await makeKey(cluster.db, partner.organizationId);
    await cluster.heal();
    await untilReady(cluster);
    tills = cluster.apis.map(({ url }) => partnerClient(url, key));
  });

  afterEach(() => cluster.heal());

  afterAll(() => cluster?.close());

  /** Starts partners with so many vouchers that none must be issued during a failover. */
  async function startPartners(): Promise<Load> {
    await postgres.untilFollowedBy(2);
    const vouchers = await issueVouchers(cluster.db, partner, 10_000);
    return startLoad(cluster, partner, tills, { partners: 24, vouchers });
  }

  it("db check and an API's log report a DATABASE_URL that leads to a standby of Patroni", async () => {
    const [standby] = (await postgres.standbys()) as [PatroniNode, PatroniNode];
    expect(await check(standby.url())).toEqual({ exitCode: 1, codes: ["standby"] });
    const env = { DATABASE_URL: standby.url(), REDIS_URL: cluster.redis.url, PORT: "0" };
    const api = startNode(["src/main.ts"], env);
    await untilStarted(() => api.output().includes("DATABASE_URL leads to a standby"));
    api.child.kill("SIGKILL");
    await api.ended;
  });

  it.each(
    [
      { count: 3_000, what: "its host dies", gapMax: GAP_MS + LOCK_MS, kill: (node: PatroniNode) => node.kill() },
      { count: 1_000, what: "its processes die", gapMax: GAP_MS, kill: (node: PatroniNode) => node.killPostgresOnly() },
    ].slice(0, ALL ? 2 : 1),
  )("Postgres under Patroni loses none of $count redemptions, and confirms within $gapMax ms, if $what", async ({
    count,
    gapMax,
    kill,
  }) => {
    expect(await check()).toEqual({ exitCode: 0, codes: [] });
    const load = await startPartners();
    await until(() => confirmed(load) >= count / 2, 90_000);
    const primary = await postgres.primary();
    const killedAt = Date.now();
    await kill(primary);
    await until(async () => ![null, primary].includes(await postgres.findPrimary()));
    await until(() => confirmed(load) >= count && Date.now() > killedAt + 10_000, 90_000);
    await load.end();
    expect(await findMissing(cluster, load.answers)).toEqual([]);
    expect(longestGap(load.answers, null, killedAt)).toBeLessThan(gapMax);
    expect(cluster.accidents).toEqual([]);
    await assertInvariants(cluster.db);
  });

  it("Postgres under Patroni waits for two standbys, and continues with one if the other standby crashes", async () => {
    const standbyNames = async () => (await cluster.db.query("SHOW synchronous_standby_names")).rows[0];
    await postgres.configure({ synchronous_node_count: 2 });
    await until(async () => (await standbyNames()).synchronous_standby_names.startsWith("2 ("), 60_000);
    expect(await check()).toEqual({ exitCode: 0, codes: [] });
    const load = await startPartners();
    await until(() => confirmed(load) >= 100, 90_000);
    const [standby] = (await postgres.standbys()) as [PatroniNode, PatroniNode];
    const killedAt = Date.now();
    await standby.kill();
    await until(() => since(load.answers, killedAt).filter(({ status }) => status === 200).length >= 300, 90_000);
    await load.end();
    expect(longestGap(load.answers, null, killedAt)).toBeLessThan(GAP_MS);
    expect(await findMissing(cluster, load.answers)).toEqual([]);
    await postgres.configure({ synchronous_node_count: 1 });
  });

  it.runIf(ALL)(
    "Postgres under Patroni keeps confirmed redemptions when a frozen primary resumes after a promotion",
    async () => {
      const load = await startPartners();
      await until(() => confirmed(load) >= 300, 90_000);
      const primary = await postgres.primary();
      primary.freeze();
      await until(async () => ![null, primary].includes(await postgres.findPrimary()), 60_000);
      const before = confirmed(load);
      await until(() => confirmed(load) >= before + 100, 60_000);
      primary.thaw();
      await sleep(5_000);
      await load.end();
      expect(await findMissing(cluster, load.answers)).toEqual([]);
      await assertInvariants(cluster.db);
    },
  );

  it("Postgres under Patroni can lose redemptions with an asynchronous standby, of which db check warns", async () => {
    await postgres.makeAsynchronous();
    expect(await check()).toEqual({ exitCode: 1, codes: ["no_synchronous_standby"] });
    const load = await startPartners();
    await until(() => confirmed(load) >= 300, 90_000);
    const primary = await postgres.primary();
    primary.replication.jam();
    const before = confirmed(load);
    await until(() => confirmed(load) >= before + 200);
    primary.replication.cut();
    await primary.kill();
    expect(await postgres.primary()).not.toBe(primary);
    await sleep(2_000);
    await load.finish();
    const missing = await findMissing(cluster, load.answers);
    expect(missing.length).toBeGreaterThan(0);
    const { rows } = await cluster.db.query("SELECT code FROM vouchers WHERE id = $1", missing.slice(0, 1));
    const redeemAgain = async () =>
      (await tills[0]?.redeem({ code: rows[0]?.code, externalRef: "another buyer" }))?.body;
    expect(await until(async () => ((await redeemAgain())?.redeemed ? true : null))).toBe(true);
    primary.replication.mend();
  });
});

const confirmed = ({ answers }: Load): number => answers.filter(({ status }) => status === 200).length;

/** Runs `db check` like an operator, with the service's addresses. */
async function check(databaseUrl = cluster.postgres.url): Promise<{ exitCode: number | null; codes: string[] }> {
  const env = { DATABASE_URL: databaseUrl, REDIS_URL: cluster.redis.url };
  const { exitCode, stdout } = await runNode(["src/cli/main.ts", "db", "check", "--json"], env);
  const { risks } = JSON.parse(stdout) as { risks: { code: string }[] };
  return { exitCode, codes: risks.map(({ code }) => code) };
}
