import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import pg from "pg";
import type { TreeHead } from "#tlog/checkpoint.ts";
import { writeKeyFile } from "#tlog/key-file.ts";
import { auditedCommand } from "../../../src/acts/with-audit-entry.ts";
import { integer } from "../../../src/cli/options.ts";
import { onSnapshot } from "../../../src/platform/db/transaction.ts";
import { auditTlog } from "../../../src/transparency/audit-log.ts";
import { findTlogTree } from "../../../src/transparency/db/log-tree.ts";
import { initTlog } from "../../../src/transparency/init-log.ts";
import { integrateBatches } from "../../../src/transparency/integrate-batches.ts";
import { readTlogSettings } from "../../../src/transparency/log-settings.ts";
import { CASES } from "./cases.ts";
import { startContender } from "./contenders.ts";
import { runLoad } from "./load.ts";
import { readCpuMicros } from "./process-usage.ts";
import { openBenchServers, openStage } from "./stage.ts";
import { formatTable, quantile } from "./table.ts";

// `node test/proof/bench/log.ts` measures the log on its own servers: how many events per second an audit compares, how
// many leaves per second the sequencer adds, and the time from a redemption until a published checkpoint covers it. It
// writes progress to standard error and tables to standard output.

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/**
 * The numbers of leaves in a batch: of one redemption, of the smallest batch with the promised rate, of a full group
 * commit, of an issue.
 */
const BATCHES = [1, 16, 64, 1_000];
const WARM_UP_SECONDS = 10;
/** How often the published checkpoint is read. Milliseconds. */
const POLL_MS = 20;

const { events, leaves, rate, seconds } = new Command("node test/proof/bench/log.ts")
  .option("--events <n>", "events of an audit; 0 leaves this part out", integer(0, 10_000_000), 500_000)
  .option("--leaves <n>", "leaves for each size of batch; 0 leaves this part out", integer(0, 10_000_000), 500_000)
  .option("--rate <n>", "redemptions per second", integer(1, 100_000), 1_000)
  .option("--seconds <n>", "length of the load; 0 leaves this part out", integer(0, 3_600), 30)
  .parse()
  .opts<{ events: number; leaves: number; rate: number; seconds: number }>();

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => interrupted.abort());
const { signal } = interrupted;
const say = (line: string) => void process.stderr.write(`${line}\n`);
const print = (head: string[], rows: string[][]) => void process.stdout.write(`\n${formatTable(head, rows)}\n`);

const servers = await openBenchServers(say);
try {
  const stage = await openStage(servers, "log", ROOT, { signal, say });
  const { db, directory } = stage;
  const [keyFile, anchor] = [join(directory, "log.key"), join(directory, "log.anchor")];
  await writeKeyFile("log", "bench.test/log", keyFile);
  const config = { keyFile, origin: null, anchors: [anchor], policyFile: null, intervalMs: 1_000 };
  const settings = await readTlogSettings(config);
  await initTlog({ pool: db, randomBytes, audited: auditedCommand("bench log", {}) }, settings, false);

  /** Gives every waiting leaf its position in the log. Returns the number of leaves. */
  const placeAll = async (pool: pg.Pool): Promise<number> => {
    const tree = await findTlogTree(pool);
    for (let head: TreeHead | null = tree; head !== null && tree !== null; ) {
      const integrated = await integrateBatches(pool, settings, [head], tree.server);
      if (integrated === null || integrated.placed === 0) return head.size - tree.size;
      head = integrated.head;
    }
    return 0;
  };

  /** Compares issued events with their leaves, like `voucherctl log audit`. */
  const measureAudit = async () => {
    await stage.ensure("vouchers", events);
    await placeAll(db);
    const [startedAt, own] = [performance.now(), readCpuMicros([process.pid])];
    const audit = await onSnapshot(db, (tx) => auditTlog(tx, () => signal.throwIfAborted()));
    const ms = performance.now() - startedAt;
    if (audit.problemCount > 0) throw new Error(audit.problems.join("\n"));
    const micros = (readCpuMicros([process.pid]) - own) / audit.events;
    const row = [String(audit.events), ((audit.events / ms) * 1_000).toFixed(0), micros.toFixed(2)];
    print(["Audited events", "events/s", "Node µs"], [row]);
  };

  const measureSequencer = async () => {
    const pool = new pg.Pool({ connectionString: stage.databaseUrl, max: 1 });
    const rows: string[][] = [];
    for (const size of BATCHES) {
      signal.throwIfAborted();
      for (let made = 0; made < leaves; ) {
        const count = Math.ceil(Math.min(leaves - made, 65_536) / size);
        await db.query(
          `INSERT INTO log_batches (id, leaves, hashes)
           SELECT nextval('log_batch_ids'), $1, h FROM unnest($2::bytea[]) AS b (h)`,
          [size, Array.from({ length: count }, () => randomBytes(size * 32))],
        );
        made += count * size;
      }
      await db.query("CHECKPOINT");
      const { rows: pids } = await pool.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      const cpu = () => [process.pid, pids[0]?.pid ?? 0].map((pid) => readCpuMicros([pid]));
      const [startedAt, before] = [performance.now(), cpu()];
      const placed = await placeAll(pool);
      const ms = performance.now() - startedAt;
      const micros = cpu().map((after, at) => ((after - (before[at] ?? 0)) / placed).toFixed(2));
      rows.push([String(size), String(placed), ((placed / ms) * 1_000).toFixed(0), ...micros]);
      say(`placed ${placed} leaves in batches of ${size}`);
    }
    await pool.end();
    print(["Leaves a batch", "leaves", "leaves/s", "Node µs", "Postgres µs"], rows);
  };

  /**
   * Measures from the event's time, which the service reads before the commit, so the result is a few milliseconds too
   * long.
   */
  const measureLatency = async () => {
    await stage.ensure("vouchers", rate * (seconds + WARM_UP_SECONDS + 1));
    const env = { ...stage.env, LOG_KEY_FILE: keyFile, LOG_ANCHOR: `file:${anchor}` };
    const running = await startContender("service", { ...stage, env, ...servers.nextRedis() });
    try {
      const load = (length: number) =>
        runLoad({
          ports: running.ports,
          seconds: length,
          pace: { rate },
          signal,
          steps: CASES.redeem.steps(stage),
          nextUnit: () => {
            const subject = stage.vouchers.pop();
            return subject && { subject, reference: `log-${subject.id}` };
          },
        });
      await load(WARM_UP_SECONDS);
      const served: { size: number; at: number }[] = [];
      let isOver = false;
      const watching = (async () => {
        while (!isOver) {
          const { rows } = await db.query(
            "SELECT size::int AS size, extract(epoch FROM published_at)::float8 * 1000 AS at FROM log_published",
          );
          if (rows[0] !== undefined && rows[0].size !== served.at(-1)?.size) served.push(rows[0]);
          await sleep(POLL_MS);
        }
      })();
      const { units, seconds: took } = await load(seconds);
      // Two passes of the sequencer cover every event, unless the sequencer cannot keep up.
      await sleep(5_000);
      isOver = true;
      await watching;
      running.check();
      const { rows } = await db.query<{ leaf: number | null; at: number }>(
        `SELECT (b.first_index + (e.log_slot & 4095))::int AS leaf,
                extract(epoch FROM e.occurred_at)::float8 * 1000 AS at
           FROM voucher_events AS e JOIN log_batches AS b ON b.id = e.log_slot >> 12
          WHERE e.event_type = 'voucher.instance.redeemed' AND e.voucher_id = ANY ($1)`,
        [units.map(({ subject }) => subject.id)],
      );
      const delays = rows.map(({ leaf, at }) => {
        const covering = served.find(({ size }) => leaf !== null && size > leaf);
        if (covering === undefined) throw new Error("a redemption is not covered five seconds after the load");
        return covering.at - at;
      });
      const shown = [0.5, 0.99, 1].map((part) => quantile(delays, part).toFixed(0));
      const row = [(units.length / took).toFixed(0), String(units.length), ...shown];
      print(["Redemptions/s", "redemptions", "p50 ms", "p99 ms", "longest ms"], [row]);
    } finally {
      await running.end();
    }
  };

  try {
    // The audit comes first, because the sequencer's measurement adds leaves without events.
    if (events > 0) await measureAudit();
    if (leaves > 0) await measureSequencer();
    if (seconds > 0) await measureLatency();
  } finally {
    await stage.close();
  }
} finally {
  await servers.close();
}
