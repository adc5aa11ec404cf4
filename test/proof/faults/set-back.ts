import { Cluster as ClusterClient, Redis } from "ioredis";
import type pg from "pg";
import { parseRedisUrl } from "../../../src/platform/redis/addresses.ts";
import { readShared } from "../../support/shared-marks.ts";
import { until } from "../../support/until.ts";
import { violation } from "./checker.ts";
import { type Deployment, embedded, processesOf } from "./cluster.ts";
import { countChanges, withClient } from "./fault-postgres.ts";
import { type Scene, target } from "./fault-target.ts";

/** What may make the write-ahead log of a set-back server longer than the one that processes have seen. */
export const GROWTHS = ["switchWal", "otherDatabase", "restartWorker"] as const;
export type Growth = (typeof GROWTHS)[number];

/**
 * How long callers may take to commit, and each deployment to make a mark, after the files were kept. The kept files
 * lack both. Milliseconds.
 */
const COMMITTED_MS = 8_000;

/**
 * Replaces the server's files with older ones, makes its log grow, and restores the right files. Meanwhile all
 * processes must refuse the server, because their writes would be lost, and their reads would be older than earlier
 * answers. Even starting processes can refuse it, because Redis has a mark that the files lack. So no other fault
 * affects Postgres or Redis meanwhile.
 */
export const setBackTarget = target<Growth>(
  15_000,
  (random) => ({ action: random.pick(GROWTHS), forMs: random.between(1_000, 2_500) }),
  (scene, { action, forMs }) =>
    scene.postgresTurn(() =>
      scene.redisTurn(async () => {
        const { cluster, secondDeployment, pause, startTurn, violations } = scene;
        const { db } = cluster;
        const postgres = embedded(cluster.postgres);
        const kept = await postgres.keepFiles();
        const deployments = [{ ...cluster }, secondDeployment];
        const copied = await readTransaction(db);
        const before = await countChanges(db);
        const hasLost = await until(async () => (await countChanges(db)) > before, COMMITTED_MS).catch(() => false);
        if (!hasLost) return false;
        return startTurn(async () => {
          if (!(await isKnown(cluster, deployments.filter(isRunning), copied))) return false;
          const end = await readEnd(db);
          const fromMs = performance.now();
          await postgres.setBack(kept);
          try {
            const changes = await countChanges(db);
            await grow(scene, action, end);
            await pause(forMs);
            const changed = (await countChanges(db)) - changes;
            const detail = `${action}: ${changed} changes`;
            if (changed > 0) violations.push(violation("a server that was set back changes nothing", detail));
          } finally {
            await postgres.restoreFiles();
            scene.onSetBack(fromMs);
          }
          return true;
        });
      }),
    ),
);

const isRunning = (deployment: Pick<Deployment, "apis" | "workers">) =>
  processesOf(deployment).some((process) => process.isRunning);

/** Reads the id of a transaction that starts now. All databases of a server share one sequence of ids. */
export async function readTransaction(db: pg.Pool): Promise<number> {
  const query = "SELECT pg_current_xact_id()::text AS id";
  const { rows } = await until(() => db.query(query).catch(() => null));
  return Number(rows[0].id);
}

/**
 * Waits until Redis has a mark of each deployment from a later transaction, which cannot be in the kept files. Returns
 * false if killed or frozen processes make none.
 */
export async function isKnown(
  { redis, redisCluster }: Pick<Scene["cluster"], "redis" | "redisCluster">,
  deployments: readonly { db: pg.Pool }[],
  transaction: number,
): Promise<boolean> {
  const client =
    redisCluster === null
      ? new Redis(redis.url)
      : new ClusterClient(parseRedisUrl(redisCluster.url).map(({ href }) => href));
  client.on("error", () => undefined);
  const isNewer = async ({ db }: { db: pg.Pool }) => {
    const deployment = await db.query("SELECT id FROM deployment");
    const newest = (await readShared(client, deployment.rows[0].id))?.newest;
    const { rows } = await db.query(
      "SELECT xmin::text AS transaction FROM database_marks WHERE position = $1 AND id = $2",
      [newest?.position, newest?.id],
    );
    return Number(rows[0]?.transaction) > transaction;
  };
  try {
    const areNewer = async () => (await Promise.all(deployments.map(isNewer))).every(Boolean);
    return await until(() => areNewer().catch(() => false), COMMITTED_MS).catch(() => false);
  } finally {
    client.disconnect();
  }
}

/** Lets the write-ahead log of a server grow past a position in bytes. */
export async function grow({ cluster }: Pick<Scene, "cluster">, how: Growth, end: number): Promise<void> {
  const { postgres, db, workers } = cluster;
  if (how === "restartWorker") {
    await workers[0]?.kill();
    workers[0]?.start();
  }
  if (how === "otherDatabase") {
    await db.query("CREATE DATABASE neighbour");
    await withClient(postgres.urlOf("neighbour"), async (neighbour) => {
      await neighbour.query("CREATE TABLE filler (text text)");
      const insert = "INSERT INTO filler SELECT repeat(n::text, 200) FROM generate_series(1, 2000) AS n";
      while ((await readEnd(db)) <= end) await neighbour.query(insert);
    });
  }
  while ((await readEnd(db)) <= end) {
    // Writes a record first, because Postgres does not switch from an empty WAL segment.
    await db.query("SELECT pg_logical_emit_message(false, 'faults', 'grow')");
    await db.query("SELECT pg_switch_wal()");
  }
}

/** Reads the end of the write-ahead log, in bytes. */
export async function readEnd(db: pg.Pool): Promise<number> {
  const query = "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::float8 AS end";
  const { rows } = await until(() => db.query(query).catch(() => null));
  return rows[0].end;
}
