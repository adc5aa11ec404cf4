import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { normaliseCode } from "../../../src/core/voucher/codes.ts";
import type { Unit } from "./load.ts";
import type { Stage } from "./stage.ts";

const FUNCTION = new URL("contenders/stored-function.sql", import.meta.url);

/** A turn of contender (i). */
interface CeilingTurn {
  connections: number;
  seconds: number;
  nextUnit: () => Pick<Unit, "subject" | "reference"> | undefined;
  /** The calls that are prepared. Vouchers that the turn does not use return to the stage. */
  calls: number;
}

/**
 * Redeems with `pgbench -M prepared`, which calls one stored function and is the only client. pgbench discards the
 * results, so the answers are read from the database: each call that pgbench counts must have redeemed its voucher.
 * @throws Error when a call failed, or redeemed nothing.
 */
export async function runCeiling(stage: Stage, turn: CeilingTurn) {
  const { db, databaseUrl, directory, partner } = stage;
  const { connections, seconds, calls, nextUnit } = turn;
  const prepared = Array.from({ length: calls }, nextUnit).filter((unit) => unit !== undefined);
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
  await db.query("ANALYZE bench_calls");
  const folder = mkdtempSync(join(directory, "pgbench-"));
  try {
    writeFileSync(join(folder, "script.sql"), "SELECT bench_redeem_next();\n");
    const load = ["-c", String(connections), "-T", String(Math.ceil(seconds)), "--log"];
    const args = ["-n", "-M", "prepared", "-f", "script.sql", ...load, databaseUrl];
    await promisify(execFile)("pgbench", args, { cwd: folder });
    const latenciesMs = readLatencies(folder);
    const { rows } = await db.query(
      `SELECT c.n, r.redeem_code AS "redeemCode"
         FROM bench_calls AS c JOIN redemptions AS r USING (voucher_id, external_ref)
        ORDER BY c.n`,
    );
    const made = new Set(rows.map(({ n }) => Number(n)));
    stage.vouchers.push(...prepared.flatMap(({ subject }, index) => (made.has(index + 1) ? [] : [subject])));
    // A call without a voucher redeems nothing.
    const isCut = rows.length === prepared.length;
    if (!isCut && rows.length !== latenciesMs.length)
      throw new Error(`pgbench made ${latenciesMs.length} calls, of which ${rows.length} redeemed`);
    const units = rows.map(({ n, redeemCode }, index): Unit => {
      const { subject, reference } = prepared[Number(n) - 1] as (typeof prepared)[number];
      const body = { redeemed: true, alreadyConfirmed: false, voucherInstanceId: subject.id, redeemCode };
      const latencyMs = latenciesMs[index] as number;
      return { subject, reference, startedAt: 0, latencyMs, body: JSON.stringify(body) };
    });
    return { units, seconds: Math.ceil(seconds), isCut };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Reads the latency of each call from pgbench's log: the third column, in microseconds. */
function readLatencies(folder: string): number[] {
  const logs = readdirSync(folder).filter((name) => name.startsWith("pgbench_log"));
  const lines = logs.flatMap((name) => readFileSync(join(folder, name), "utf8").trim().split("\n"));
  return lines.map((line) => Number(line.split(" ")[2]) / 1_000);
}
