import { besideTransaction } from "../../support/outside-transaction.ts";
import { until } from "../../support/until.ts";
import { embedded } from "./cluster.ts";
import { type Fault, RETRIED_MS, type Scene } from "./fault-target.ts";

// The faults of the deployment's Postgres.

export type PostgresAction =
  | "kill"
  | "killOne"
  | "freeze"
  | "lockRows"
  | "stallCommits"
  | "crashAndPromote"
  | "endWaitsAndPromote";

/** Pause between two rounds that end all waiting sessions. Milliseconds. */
const END_EVERY_MS = 100;

export async function inflictOnPostgres(scene: Scene, { action, forMs }: Fault<PostgresAction>): Promise<void> {
  const { cluster, upcomingVouchers, random, pause, onPrimaryLost } = scene;
  const { postgres, db } = cluster;
  switch (action) {
    case "killOne":
      return postgres.killOne(random);
    case "freeze":
      await postgres.freeze();
      await pause(forMs);
      return postgres.thaw();
    case "lockRows":
      await until(() => db.query("SELECT 1").catch(() => null));
      return besideTransaction(db, async (outside) => {
        const lock = "SELECT id FROM vouchers WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED";
        await outside.query(lock, [upcomingVouchers()]);
        await pause(forMs);
      });
    case "stallCommits": {
      // Makes commits wait for a standby that does not exist. Their rows stay locked, but reads continue.
      const waitFor = async (name: string) => {
        for (const statement of [`ALTER SYSTEM SET synchronous_standby_names = '${name}'`, "SELECT pg_reload_conf()"])
          await until(() => db.query(statement).catch(() => null));
      };
      await waitFor("nowhere");
      await pause(forMs);
      return waitFor(embedded(postgres).standbyNames);
    }
    case "crashAndPromote":
    case "endWaitsAndPromote": {
      // Commits wait for a standby that is cut off. A crash, or the end of their sessions, makes them visible. Then the
      // primary is lost.
      const own = embedded(postgres);
      own.cutOffStandby();
      if (action === "endWaitsAndPromote") await endWaits(scene, random.pick(ENDS), forMs + RETRIED_MS);
      else {
        await pause(forMs);
        if (random.chance(0.5)) await own.killOne(random);
        else {
          await own.kill();
          await own.start();
        }
        // Callers repeat unanswered calls.
        await pause(RETRIED_MS);
      }
      await own.promoteStandby(onPrimaryLost);
      return own.start();
    }
    case "kill":
      await postgres.kill();
      await pause(forMs);
      return postgres.start();
  }
}

/** How to end a COMMIT's wait for a standby: the whole session, or only the wait. */
export const ENDS = ["pg_terminate_backend", "pg_cancel_backend"] as const;

/**
 * Repeatedly ends every wait for a standby, so that callers see commits that the standby lacks. This includes waits of
 * operators' sessions, which needs a superuser's rights.
 */
export async function endWaits(
  { cluster: { db }, pause }: Pick<Scene, "cluster" | "pause">,
  how: (typeof ENDS)[number],
  forMs: number,
): Promise<void> {
  const end = `SELECT ${how}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
  for (let waitedMs = 0; waitedMs < forMs; waitedMs += END_EVERY_MS) {
    await pause(END_EVERY_MS);
    await db.query(end).catch(() => undefined);
  }
}
