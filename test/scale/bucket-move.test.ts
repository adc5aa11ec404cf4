import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { startLoad } from "../cluster/load.ts";
import { BUCKET, onNode } from "../support/citus.ts";
import { partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startApi, startWorkers, type TestApi } from "../support/service.ts";
import { makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

const nodes = inject("citusNodes");

/** Redemptions before, between and after the moves. */
const REDEMPTIONS = 150;

// `node test/scale/citus.ts` runs it. It needs a Citus cluster with at least two workers.
describe.skipIf(nodes.length < 3)("a bucket on Citus", () => {
  let servers: TestServers;
  let partner: TestPartner;
  let key: string;
  let api: TestApi;

  beforeAll(async () => {
    servers = await openTestServers();
    partner = await makePartner(servers.db);
    key = (await makeKey(servers.db, partner.organizationId)).key;
    api = await startApi(servers);
    await startWorkers(servers);
  });

  afterAll(() => endService(servers));

  /** The number of the worker, in the order of the nodes, that has the bucket. */
  async function findHolder(): Promise<number> {
    const { rows } = await servers.db.query<{ port: number }>(
      "SELECT DISTINCT nodeport AS port FROM citus_shards WHERE table_name = $1::regclass",
      [`${BUCKET}.vouchers`],
    );
    expect(rows).toHaveLength(1);
    return nodes.findIndex((node) => Number(new URL(node).port) === rows[0]?.port);
  }

  it("moves to another node and back under load: no call fails, nothing is lost, and its triggers move with it", async () => {
    const load = await startLoad(servers, partner, [partnerClient(api.url, key)], { partners: 8 });
    const redeem = async (more: number) => {
      const goal = load.answers.length + more;
      await until(() => load.answers.length >= goal);
    };
    const first = await findHolder();
    const second = first === 1 ? 2 : 1;
    await redeem(REDEMPTIONS);
    for (const to of [second, first]) {
      const { hostname, port } = new URL(nodes[to] as string);
      await servers.db.query("SELECT citus_schema_move($1::regnamespace, $2::text, $3::integer)", [
        BUCKET,
        hostname,
        Number(port),
      ]);
      expect(await findHolder()).toBe(to);
      await redeem(REDEMPTIONS);
    }
    await load.end();
    expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);
    await assertInvariants(servers.db);
    const holder = new pg.Client({ connectionString: onNode(nodes[first] as string, servers.ownerUrl) });
    await holder.connect();
    const { rows } = await holder.query(
      "SELECT regexp_replace(t.tgname, '_[0-9]+$', '') AS name, min(t.tgrelid::regclass::text) AS of FROM pg_trigger AS t" +
        " WHERE NOT t.tgisinternal AND t.tgname LIKE 'redemptions%' AND t.tgname ~ '[0-9]$' GROUP BY 1 ORDER BY 1",
    );
    const redemptions = rows.find(({ name }) => name === "redemptions_immutable").of;
    expect(rows.map(({ name }) => name)).toEqual([
      "redemptions_closed_forward",
      "redemptions_closed_no_delete",
      "redemptions_immutable",
      "redemptions_in_open_time",
      "redemptions_no_truncate",
    ]);
    await holder.query("SET citus.enable_manual_changes_to_shards = on");
    for (const statement of [
      `DELETE FROM ${redemptions}`,
      `UPDATE ${redemptions} SET key_id = ''`,
      `TRUNCATE ${redemptions}`,
    ])
      await expect(holder.query(statement), statement).rejects.toThrow("not allowed");
    await holder.end();
    for (const statement of ["DELETE FROM redemptions", "UPDATE redemptions SET key_id = ''", "TRUNCATE redemptions"])
      await expect(servers.db.query(statement), statement).rejects.toThrow("not allowed");
  });
});
