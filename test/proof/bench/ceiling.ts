import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { normaliseCode } from "../../../src/core/voucher/codes.ts";
import type { Pace, Unit } from "./load.ts";
import type { Stage } from "./stage.ts";

const FUNCTION = new URL("contenders/stored-function.sql", import.meta.url);

/** pgbench's connections at a fixed rate: more than the calls that run at once. */
const RATE_CLIENTS = "64";
/** How long pgbench runs before and after the measured time, to open its connections, plan and close. Seconds. */
const WARM_UP_SECONDS = 1;
const TAIL_SECONDS = 1;
/** Seconds that a turn takes besides its measured time. One of them is for rounding up to pgbench's whole seconds. */
export const EXTRA_SECONDS = WARM_UP_SECONDS + TAIL_SECONDS + 1;

interface CeilingTurn {
  pace: Pace;
  seconds: number;
  nextUnit: () => Prepared | undefined;
  /** The number of calls to prepare. Unused vouchers return to the stage. */
  calls: number;
}

type Prepared = Pick<Unit, "subject" | "reference">;

/** A call in pgbench's log. Milliseconds. */
interface LoggedCall {
  endedAtMs: number;
  latencyMs: number;
}

/**
 * Redeems with `pgbench -M prepared`, which only calls one stored function. Reads the meters while pgbench runs, so
 * that preparing the calls and opening connections are not measured. Only calls between the two readings are units.
 * pgbench discards results, so the answers come from the database: each call that pgbench counts must have redeemed its
 * voucher.
 * @throws Error if a call failed or redeemed nothing.
 */
export async function runCeiling<Meters>(stage: Stage, turn: CeilingTurn, readMeters: () => Promise<Meters>) {
  const { db, databaseUrl, directory } = stage;
  const { pace, seconds, calls, nextUnit } = turn;
  const prepared = Array.from({ length: calls }, nextUnit).filter((unit) => unit !== undefined);
  await prepareCalls(stage, prepared);
  const folder = mkdtempSync(join(directory, "pgbench-"));
  try {
    writeFileSync(join(folder, "script.sql"), "SELECT bench_redeem_next();\n");
    const sending = "rate" in pace ? ["-c", RATE_CLIENTS, "-R", String(pace.rate)] : ["-c", String(pace.connections)];
    const length = ["-T", String(Math.ceil(WARM_UP_SECONDS + seconds + TAIL_SECONDS)), "--log"];
    const args = ["-n", "-M", "prepared", "-f", "script.sql", ...sending, ...length, databaseUrl];
    const running = promisify(execFile)("pgbench", args, { cwd: folder });
    const [{ before, after, fromMs, untilMs }] = await Promise.all([readAround(seconds, readMeters), running]);
    const logged = readLog(folder);
    const { rows } = await db.query(
      `SELECT c.n, r.redeem_code AS "redeemCode"
         FROM bench_calls AS c JOIN redemptions AS r USING (voucher_id, external_ref)
        ORDER BY r.redeemed_at, c.n`,
    );
    const made = new Set(rows.map(({ n }) => Number(n)));
    stage.vouchers.push(...prepared.flatMap(({ subject }, index) => (made.has(index + 1) ? [] : [subject])));
    // If pgbench makes more calls than were prepared, the last ones redeem nothing.
    const isCut = rows.length === prepared.length;
    if (!isCut && rows.length !== logged.length)
      throw new Error(`pgbench made ${logged.length} calls, of which ${rows.length} redeemed`);
    const units = rows.flatMap(({ n, redeemCode }, index): Unit[] => {
      const { subject, reference } = prepared[Number(n) - 1] as Prepared;
      const { endedAtMs, latencyMs } = logged[index] as LoggedCall;
      if (endedAtMs < fromMs || endedAtMs >= untilMs) return [];
      const body = { redeemed: true, alreadyConfirmed: false, voucherInstanceId: subject.id, redeemCode };
      return [{ subject, reference, startedAt: 0, latencyMs, body: JSON.stringify(body) }];
    });
    return { units, seconds: (untilMs - fromMs) / 1_000, isCut, before, after };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function prepareCalls({ db, partner }: Stage, prepared: readonly Prepared[]): Promise<void> {
  await db.query(readFileSync(FUNCTION, "utf8"));
  await db.query("TRUNCATE bench_calls");
  await db.query("SELECT setval('bench_call_numbers', 1, false)");
  await db.query(
    `INSERT INTO bench_calls
     SELECT n, $1, $2, v.id, v.code_key, v.ref
       FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS v (id, code_key, ref, n)`,
    [
      partner.organizationId,
      partner.keyId,
      prepared.map(({ subject }) => subject.id),
      prepared.map(({ subject }) => normaliseCode(subject.code)),
      prepared.map(({ reference }) => reference),
    ],
  );
  await db.query("VACUUM (ANALYZE) bench_calls");
}

async function readAround<Meters>(seconds: number, readMeters: () => Promise<Meters>) {
  await sleep(WARM_UP_SECONDS * 1_000);
  const [fromMs, before] = [Date.now(), await readMeters()];
  await sleep(seconds * 1_000);
  const [untilMs, after] = [Date.now(), await readMeters()];
  return { before, after, fromMs, untilMs };
}

function readLog(folder: string): LoggedCall[] {
  const logs = readdirSync(folder).filter((name) => name.startsWith("pgbench_log"));
  const lines = logs.flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n").filter(Boolean));
  return lines
    .map((line) => {
      // The fields: client, transaction, microseconds, script, end in seconds, microseconds of the end.
      const [, , tookMicros, , seconds, micros] = line.split(" ").map(Number);
      return { endedAtMs: Number(seconds) * 1_000 + Number(micros) / 1_000, latencyMs: Number(tookMicros) / 1_000 };
    })
    .toSorted((one, other) => one.endedAtMs - other.endedAtMs);
}
