import pg from "pg";
import { expect, it } from "vitest";
import { encodeHex } from "../../packages/tlog/src/bytes.ts";
import { findPublished } from "../../src/db/log-checkpoints.ts";
import { onSnapshot } from "../../src/db/transaction.ts";
import { voidVoucher } from "../../src/services/admin/void-voucher.ts";
import { sealVoucher } from "../../src/services/chain/seal-events.ts";
import { auditLog } from "../../src/services/log/audit-log.ts";
import { SeededRandom } from "../faults/seeded-random.ts";
import { startNode } from "../support/child-process.ts";
import { assertInvariants } from "../support/invariants.ts";
import { KeptNotes } from "../support/kept-notes.ts";
import { beginLog, makeLogFiles, naiveTreeRoot, openSequencer, startWitness } from "../support/log-setup.ts";
import { openTestServers } from "../support/servers.ts";
import { issueVouchers, makePartner, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";

/** `LOG_KILLS=10000` runs until so many sequencers were killed; without it, the run takes half a minute. */
const KILLS = Number(process.env.LOG_KILLS ?? Number.POSITIVE_INFINITY);
const RUN_MS = KILLS === Number.POSITIVE_INFINITY ? 30_000 : Number.POSITIVE_INFINITY;
const SEQUENCERS = 2;
const WRITERS = 3;

it(
  "sequencers and writers that are killed at any moment lose, double and reorder no leaf, and no two checkpoints contradict",
  async () => {
    const servers = await openTestServers();
    const files = makeLogFiles();
    const notes = new KeptNotes();
    const { url } = await startWitness(servers, files, 0, { before: (note) => notes.keep(note) });
    files.setWitnesses([url]);
    await beginLog(servers.db, files);
    const partner = await makePartner(servers.db);
    const random = new SeededRandom(17);
    const startedAt = performance.now();
    const counts = { processes: 0, sequencers: 0, writers: 0, events: 0 };
    const refusals: string[] = [];
    const isOver = () => counts.processes + counts.sequencers >= KILLS || performance.now() - startedAt > RUN_MS;

    const killProcesses = async () => {
      while (!isOver()) {
        const { child, output, ended } = startNode(["test/log/sequencer-process.ts"], {
          DATABASE_URL: servers.logUrl,
          ...files.env,
        });
        await Promise.race([until(() => output().includes("ready"), 60_000), ended]);
        const livesMs = random.between(0, 600);
        await new Promise((resolve) => setTimeout(resolve, livesMs));
        child.kill("SIGKILL");
        await ended;
        counts.processes += 1;
        notes.keepAnchor(files.anchor);
        refusals.push(
          ...output()
            .split("\n")
            .filter((line) => line !== "" && line !== "ready"),
        );
      }
    };
    const killBackends = async (name: "sequencer" | "writer", pauseMaxMs: number) => {
      while (!isOver()) {
        const { rowCount } = await servers.db.query(
          `SELECT FROM (SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1
           AND state <> 'idle' ORDER BY random() LIMIT 1) AS s WHERE pg_terminate_backend(s.pid)`,
          [name],
        );
        counts[`${name}s`] += rowCount ?? 0;
        const pauseMs = random.between(0, pauseMaxMs);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    };
    /** Passes of this process: their connections are killed more often than a process starts. */
    const runPasses = async () => {
      const { run } = openSequencer(servers, files);
      while (!isOver()) {
        const report = await run().catch(() => null);
        if (report?.refused) refusals.push(report.refused);
      }
    };
    const writers = new pg.Pool({ connectionString: servers.ownerUrl, application_name: "writer", max: WRITERS });
    writers.on("error", () => undefined);
    writers.on("connect", (client) => client.on("error", () => undefined));
    const writeEvents = async () => {
      while (!isOver()) {
        // A killed connection fails one of these.
        await (async () => {
          const [voucher] = await issueVouchers(writers, partner, random.between(1, 9));
          if (voucher === undefined) return;
          await voidVoucher(provisioning(writers), partner.organizationId, voucher.code, null);
          await sealVoucher({ pool: writers }, voucher.id);
        })().catch(() => undefined);
      }
    };
    try {
      await Promise.all([
        ...Array.from({ length: SEQUENCERS }, killProcesses),
        runPasses(),
        killBackends("sequencer", 600),
        killBackends("writer", 2_000),
        ...Array.from({ length: WRITERS }, writeEvents),
      ]);
      await writers.end();
      const { run } = openSequencer(servers, files);
      // A killed one may still have its transaction.
      const last = await until(async () => {
        const report = await run();
        const { rowCount } = await servers.db.query("SELECT 1 FROM log_batches WHERE first_index IS NULL LIMIT 1");
        return rowCount === 0 && report.published === report.size ? report : null;
      });
      const audit = await onSnapshot(servers.db, auditLog);
      counts.events = audit.events;
      process.stdout.write(`${JSON.stringify({ ...counts, checkpoints: notes.count })}\n`);
      expect(refusals).toEqual([]);
      expect(last.refused).toBeNull();
      expect(await notes.findProblems(servers.db)).toEqual([]);
      expect(audit).toMatchObject({ waiting: 0, lost: 0, problems: [], leaves: last.size });
      expect(encodeHex((await findPublished(servers.db))?.root ?? new Uint8Array())).toBe(
        await naiveTreeRoot(servers.db),
      );
      await assertInvariants(servers.db);
      // A run without progress would prove nothing.
      expect(counts.processes).toBeGreaterThan(5);
      expect(counts.sequencers + counts.writers).toBeGreaterThan(20);
      expect(notes.count).toBeGreaterThan(5);
    } finally {
      await servers.close();
      files.remove();
    }
  },
  24 * 3_600_000,
);
