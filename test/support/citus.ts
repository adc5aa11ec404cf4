import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { inject } from "vitest";
import type { Queryable } from "../../src/db/pool.ts";

/** The schema of the voucher tables on Citus: one bucket, which one node holds. */
export const BUCKET = "vs00";

/** Tables of one bucket. They are joined with each other, and written in one transaction. */
const BUCKET_TABLES = [
  "vouchers",
  "reservations",
  "redemptions",
  "redemptions_closed",
  "voucher_events",
  "claims",
  "purchases",
  "broken_chains",
  "log_batches",
  "webhook_endpoints",
  "webhook_outbox",
  "webhook_deliveries",
];

/** The catalog, of which each node holds a copy. */
const REFERENCE_TABLES = [
  "organizations",
  "brands",
  "products",
  "batches",
  "batch_windows",
  "listings",
  "members",
  "referrer_contracts",
  "referral_links",
  "api_keys",
  "api_key_secrets",
];

/** Functions that statements call, and that must run on the node of the bucket. */
const DISTRIBUTED_FUNCTIONS = [
  "assert_row_count(bigint, integer, text)",
  "find_earliest_open_redemption()",
  "may_see_sandbox(text, text, text)",
];

/**
 * Settings of the service's connections to the coordinator, after those of the pool: plans of distributed tables cannot be generic.
 * `citus.propagate_set_commands` sends a transaction's own lock timeout to the node.
 */
const OPTIONS = [`search_path=${BUCKET},public`, "plan_cache_mode=auto", "citus.propagate_set_commands=local"];

/**
 * Settings of the nodes' own connections, which the coordinator does not send. The lock timeout is the pool's. The function may_see_sandbox
 * reads copied tables on the node that runs it.
 */
const NODE_SETTINGS = ["lock_timeout='250ms'", "citus.allow_nested_distributed_execution=on"];

/** Settings of the coordinator's database. Some tests add triggers to tables of the bucket. */
const COORDINATOR_SETTINGS = ["citus.enable_unsafe_triggers=on"];

/** Whether the tests run on Citus. */
export const onCitus = () => inject("citusNodes").length > 0;

/** A query of the coordinator's connections whose statements wait for a lock on another node. Citus names them by node × 10^10 + pid. */
export const WAITING_ON_NODES = `
  SELECT substring(w.name FROM 'gpid=([0-9]+)')::bigint % 10000000000
    FROM run_command_on_workers($$ SELECT coalesce(string_agg(application_name, ','), '') FROM pg_stat_activity
                                    WHERE datname = current_database() AND wait_event_type = 'Lock' $$) AS r
   CROSS JOIN LATERAL unnest(string_to_array(r.result, ',')) AS w (name)`;

/** An address whose connections find the tables of the bucket. */
export function bucketUrl(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.search = `options=${encodeURIComponent(OPTIONS.map((setting) => `-c ${setting}`).join(" "))}`;
  return url.href;
}

/** The same database on other nodes. */
export function onNode(node: string, databaseUrl: string): string {
  const url = new URL(node);
  url.pathname = new URL(databaseUrl).pathname;
  return url.href;
}

/** Installs Citus in a database that exists on every node, and makes the first node the coordinator. */
export async function joinNodes(databaseUrl: string, [coordinator = "", ...workers]: readonly string[]): Promise<void> {
  for (const node of [coordinator, ...workers])
    await run(onNode(node, databaseUrl), "CREATE EXTENSION IF NOT EXISTS citus");
  const place = (node: string) => [new URL(node).hostname, Number(new URL(node).port || 5432)];
  const client = await connect(onNode(coordinator, databaseUrl));
  await client.query("SELECT citus_set_coordinator_host($1, $2)", place(coordinator));
  for (const worker of workers) await client.query("SELECT citus_add_node($1, $2)", place(worker));
  await client.end();
}

/** Moves the voucher tables of a migrated database into one distributed schema. */
export async function distributeBucket(databaseUrl: string): Promise<void> {
  const client = await connect(databaseUrl);
  // Citus warns of triggers in general; these read and write the bucket's own tables only.
  await client.query("SET citus.enable_unsafe_triggers = on");
  await client.query(`CREATE SCHEMA ${BUCKET}`);
  for (const table of BUCKET_TABLES) await client.query(`ALTER TABLE ${table} SET SCHEMA ${BUCKET}`);
  for (const table of REFERENCE_TABLES) await client.query("SELECT create_reference_table($1)", [table]);
  await client.query("SELECT citus_schema_distribute($1)", [BUCKET]);
  for (const name of DISTRIBUTED_FUNCTIONS) await client.query("SELECT create_distributed_function($1)", [name]);
  await continueSequence(databaseUrl, await findHolder(client, databaseUrl));
  await client.query(
    `ALTER FUNCTION advance_sandbox(text, integer, text, text, text) SET search_path = ${BUCKET}, public, pg_temp`,
  );
  await client.end();
}

/** Moves the bucket to another node while it is in use. */
export async function moveBucket(databaseUrl: string, to: string): Promise<void> {
  const client = await connect(databaseUrl);
  await continueSequence(await findHolder(client, databaseUrl), to);
  const { hostname, port } = new URL(to);
  await client.query("SELECT citus_schema_move($1::regnamespace, $2::text, $3::integer)", [
    BUCKET,
    hostname,
    Number(port),
  ]);
  await client.end();
}

/** The address of the node that has the bucket. */
export async function findHolder(db: Queryable, databaseUrl: string): Promise<string> {
  const { rows } = await db.query<{ host: string; port: number }>(
    "SELECT DISTINCT nodename AS host, nodeport AS port FROM citus_shards WHERE table_name = $1::regclass",
    [`${BUCKET}.vouchers`],
  );
  if (rows.length !== 1) throw new Error(`${rows.length} nodes have the bucket`);
  const url = new URL(databaseUrl);
  Object.assign(url, { hostname: rows[0]?.host, port: rows[0]?.port });
  return url.href;
}

/** More ids than the outbox gets while a bucket moves. */
const MOVE_IDS = 1_000_000_000;

/**
 * Has the ids of the outbox, whose order is that of each voucher's events, continue on another node. Citus draws them on the node of the
 * bucket, and gives each node a range of its own.
 */
async function continueSequence(from: string, to: string): Promise<void> {
  const sequence = `${BUCKET}.webhook_outbox_id_seq`;
  const source = await connect(from);
  const { rows } = await source.query<{ last: string }>(`SELECT last_value AS last FROM ${sequence}`);
  await source.end();
  const target = await connect(to);
  await target.query("SET citus.enable_ddl_propagation = off");
  await target.query(`ALTER SEQUENCE ${sequence} MINVALUE 1 NO MAXVALUE`);
  await target.query("SELECT setval($1, $2)", [sequence, Number(rows[0]?.last) + MOVE_IDS]);
  await target.end();
}

/** Lets a database be cloned: ends its connections, also those of Citus' own process, and accepts no others. */
export async function freezeTemplate(nodes: readonly string[], name: string): Promise<void> {
  for (const node of nodes) {
    const client = await connect(node);
    await client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    for (;;) {
      const { rowCount } = await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
        [name],
      );
      if (rowCount === 0) break;
      await sleep(50);
    }
    await client.end();
  }
}

/** Clones a database on every node. */
export async function cloneOnNodes(nodes: readonly string[], name: string, template: string): Promise<void> {
  await Promise.all(
    nodes.map(async (node, index) => {
      await run(node, `CREATE DATABASE ${name} TEMPLATE ${template}`);
      for (const setting of index > 0 ? NODE_SETTINGS : COORDINATOR_SETTINGS)
        await run(node, `ALTER DATABASE ${name} SET ${setting}`);
    }),
  );
}

export async function dropOnNodes(nodes: readonly string[], name: string): Promise<void> {
  for (const node of nodes) await run(node, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
}

async function run(url: string, statement: string): Promise<void> {
  const client = await connect(url);
  await client.query(statement).finally(() => client.end());
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}
