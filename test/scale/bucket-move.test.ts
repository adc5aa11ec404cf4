import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { startLoad } from "../cluster/load.ts";
import { findHolder, moveBucket, onNode } from "../support/citus.ts";
import { partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { beginLog, makeLogFiles } from "../support/log-setup.ts";
import { databaseTime } from "../support/outside-transaction.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startApi, startWorkers, type TestApi } from "../support/service.ts";
import { makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { startReceiver, WEBHOOK_ENV, type WebhookReceiver } from "../support/webhook-receiver.ts";

const nodes = inject("citusNodes");

/** Redemptions before, between and after the moves. */
const REDEMPTIONS = 150;

// `node test/scale/citus.ts` runs it. It needs a Citus cluster with at least two workers.
describe.skipIf(nodes.length < 3)("a bucket on Citus", () => {
  let servers: TestServers;
  let partner: TestPartner;
  let key: string;
  let api: TestApi;
  let receiver: WebhookReceiver;
  let endpoint: string;

  beforeAll(async () => {
    servers = await openTestServers();
    partner = await makePartner(servers.db);
    key = (await makeKey(servers.db, partner.organizationId)).key;
    api = await startApi(servers);
    receiver = await startReceiver();
    servers.onClose(() => receiver.close());
    endpoint = await receiver.addEndpoint(servers.db, partner.organizationId, ["voucher.instance.redeemed"]);
    const files = makeLogFiles();
    servers.onClose(async () => files.remove());
    await beginLog(servers.db, files);
    const queues = { WORKER_QUEUES: "redeem,seal,sweep,webhook,log", LOG_INTERVAL_MS: "200" };
    await startWorkers(servers, { ...WEBHOOK_ENV, ...files.env, ...queues });
  });

  afterAll(() => endService(servers));

  const holder = () => findHolder(servers.db, onNode(nodes[0] as string, servers.ownerUrl));
  const count = async (query: string) => Number((await servers.db.query<{ count: string }>(query)).rows[0]?.count);

  it("moves to another node and back under load: no call fails, nothing is lost, webhooks and the log are complete and in order, and its triggers move with it", async () => {
    const load = await startLoad(servers, partner, [partnerClient(api.url, key)], { partners: 8 });
    const redeem = async (more: number) => {
      const goal = load.answers.length + more;
      await until(() => load.answers.length >= goal, 120_000);
    };
    const first = await holder();
    const other = nodes.slice(1).map((node) => onNode(node, servers.ownerUrl));
    const second = other.find((url) => new URL(url).port !== new URL(first).port) as string;
    const moves: { from: Date; to: Date }[] = [];
    await redeem(REDEMPTIONS);
    for (const target of [second, first]) {
      const from = await databaseTime(servers.db);
      await moveBucket(onNode(nodes[0] as string, servers.ownerUrl), target);
      moves.push({ from, to: await databaseTime(servers.db) });
      expect(new URL(await holder()).port).toBe(new URL(target).port);
      await redeem(REDEMPTIONS);
    }
    await load.end();
    const { length } = load.answers;
    process.stdout.write(
      `${length} redemptions; moves of ${moves.map(({ from, to }) => Number(to) - Number(from))} ms\n`,
    );
    expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);

    // Every redemption is delivered, and the order of events continues on the other node.
    await until(() => new Set(receiver.of(endpoint).map(({ voucherId }) => voucherId)).size === length, 120_000);
    expect(receiver.received.every(({ isSigned }) => isSigned)).toBe(true);
    for (const { from, to } of moves) {
      const { rows } = await servers.db.query(
        `SELECT max(d.position) FILTER (WHERE d.created_at < $1) < min(d.position) FILTER (WHERE d.created_at > $2) AS "inOrder"
           FROM webhook_deliveries AS d`,
        [from, to],
      );
      expect(rows).toEqual([{ inOrder: true }]);
    }
    // Every event has its leaf in the log that is served.
    const leaves = await count("SELECT count(*) FROM voucher_events WHERE seal_status = 'Sealed'");
    await until(async () => (await count("SELECT size AS count FROM log_published")) === leaves, 60_000);
    expect(await count("SELECT count(*) FROM log_batches WHERE first_index IS NULL")).toBe(0);
    await assertInvariants(servers.db);

    const node = new pg.Client({ connectionString: first });
    await node.connect();
    const { rows } = await node.query(
      "SELECT regexp_replace(t.tgname, '_[0-9]+$', '') AS name, min(t.tgrelid::regclass::text) AS of FROM pg_trigger AS t" +
        " WHERE NOT t.tgisinternal AND t.tgname LIKE 'redemptions%' AND t.tgname ~ '[0-9]$' GROUP BY 1 ORDER BY 1",
    );
    const redemptions = rows.find(({ name }) => name === "redemptions_immutable").of;
    expect(rows.map(({ name }) => name)).toEqual([
      "redemptions_closed_forward",
      "redemptions_closed_no_delete",
      "redemptions_closed_no_truncate",
      "redemptions_immutable",
      "redemptions_in_open_time",
      "redemptions_no_truncate",
    ]);
    await node.query("SET citus.enable_manual_changes_to_shards = on");
    for (const statement of [
      `DELETE FROM ${redemptions}`,
      `UPDATE ${redemptions} SET key_id = ''`,
      `TRUNCATE ${redemptions}`,
    ])
      await expect(node.query(statement), statement).rejects.toThrow("not allowed");
    await node.end();
    for (const statement of ["DELETE FROM redemptions", "UPDATE redemptions SET key_id = ''", "TRUNCATE redemptions"])
      await expect(servers.db.query(statement), statement).rejects.toThrow("not allowed");
  });
});
