import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pLimit from "p-limit";
import { expect, it } from "vitest";
import { useDatabase } from "../../support/use-service.ts";
import { makeBrokenCopy, turnsRed } from "./broken-copy.ts";
import { CODE_GUARDS } from "./code-guards.ts";

// Breaks each guard alone. A test must then fail.

const { db } = useDatabase();

/** Longer than both tests take on two cores. Milliseconds. */
const ALL_MS = 3 * 3_600_000;
const limit = pLimit(2);
const CONSTRAINTS = ["test/platform/db/constraints"];
/** The tests that may detect the loss of a guard in the schema, the cheapest first. */
const SCHEMA_TESTS = [
  CONSTRAINTS,
  ["test/acts/erasure-rows", "test/core/redeem/redemption-times", "test/core/redeem/redeem-outcomes"],
  ["test/platform", "test/core", "test/acts"],
  ["test"],
];

it(
  "for each constraint, unique index and trigger a test fails if the database lacks it",
  { timeout: ALL_MS },
  async () => {
    const seen = await readSeenConstraints();
    const all = await readSchemaGuards();
    expect(all.length).toBeGreaterThan(100);
    const guards = all.filter(({ rule }) => !seen.has(rule));
    expect(guards.length).toBeLessThan(all.length / 2);
    const unnoticed = await findUnnoticed(guards, async ({ sql }) => {
      for (const files of SCHEMA_TESTS) if (await turnsRed(files, { env: { BREAK_SCHEMA: sql } })) return true;
      return false;
    });
    expect(unnoticed).toEqual([]);
  },
);

it("each listed guard in the code has a test that fails when the guard is taken out", { timeout: ALL_MS }, async () => {
  const unnoticed = await findUnnoticed(CODE_GUARDS, async (guard) => {
    const copy = makeBrokenCopy(guard);
    return turnsRed(guard.tests, { cwd: copy.directory }).finally(copy.remove);
  });
  expect(unnoticed).toEqual([]);
});

/**
 * Reads the constraints that `CONSTRAINTS` finds in Postgres's errors, by name and table. That test fails without them,
 * so the run need not remove them.
 */
async function readSeenConstraints(): Promise<Set<string>> {
  const directory = mkdtempSync(join(tmpdir(), "voucher-guards-"));
  const seen = join(directory, "seen.txt");
  try {
    expect(await turnsRed(CONSTRAINTS, { env: { SEEN_CONSTRAINTS: seen } })).toBe(false);
    return new Set(readFileSync(seen, "utf8").trimEnd().split("\n"));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Lists every constraint, unique index and trigger of the schema, and the statement that removes it. */
async function readSchemaGuards(): Promise<{ rule: string; sql: string }[]> {
  const { rows } = await db.query(`
    SELECT conrelid::regclass || ' ' || conname AS rule,
           format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', conrelid::regclass, conname) AS sql
      FROM pg_constraint
     WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'u', 'x') AND conislocal
       AND conparentid = 0 AND conrelid NOT IN (0, 'migrations'::regclass)
     UNION ALL
    SELECT tgrelid::regclass || ' ' || tgname, format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass)
      FROM pg_trigger WHERE NOT tgisinternal AND tgparentid = 0
     UNION ALL
    SELECT indrelid::regclass || ' ' || indexrelid::regclass, format('DROP INDEX %s', indexrelid::regclass)
      FROM pg_index JOIN pg_class ON oid = indexrelid
     WHERE indisunique AND relnamespace = 'public'::regnamespace AND NOT relispartition
       AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
     ORDER BY 1`);
  return rows;
}

/** Breaks guards, some at the same time in separate copies. Returns the rules whose loss no test detects. */
async function findUnnoticed<Guard extends { rule: string }>(
  guards: readonly Guard[],
  isNoticed: (guard: Guard) => Promise<boolean>,
): Promise<string[]> {
  const checks = guards.map((guard) => limit(async () => ((await isNoticed(guard)) ? [] : [guard.rule])));
  return (await Promise.all(checks)).flat();
}
