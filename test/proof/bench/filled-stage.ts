import pg from "pg";
import { newId } from "../../../src/core/voucher/ids.ts";
import { readStatements } from "../../../src/platform/db/statements.ts";
import { type BenchServers, openStage, type Stage, type Subject, type Supply } from "./stage.ts";

const sql = readStatements(new URL("./filled-stage.sql", import.meta.url));
const textOf = (name: string, plan: Plan): string =>
  (sql[name]?.text as string).replaceAll(/\{(\w+)\}/g, (_, value: keyof Plan) => `${plan[value]}`);
const FUNCTIONS = Object.keys(sql).filter((name) => name.startsWith("make_"));
const TABLES = ["vouchers", "voucher_events", "redemptions", "reservations", "claims", "log_batches"];
/** Number of rows that one statement inserts: a multiple of the size of each leaf batch. */
const CHUNK = 20_000;
/**
 * Odd primes. If such a prime does not divide n, then i * prime % n, for i from 0 to n - 1, gives each of these numbers
 * once, in a random-looking order.
 */
const STRIDES = [611_953, 611_957];
/** Time between two redemptions: 10 000 a day. Milliseconds. */
const REDEMPTION_MS = 8_640;
const DAY_MS = 86_400_000;
/** The number of connections that insert rows: one for each core of a small server. */
const LOADERS = 2;

/** How many vouchers the database has at the start, and how many are redeemed: at most three eighths. */
export interface Filling {
  vouchers: number;
  redeemed: number;
}

/**
 * Opens a stage and fills its database with the rows that years of operation would leave. Requests use vouchers from
 * all of these years.
 */
export async function openFilledStage(
  servers: Pick<BenchServers, "directory" | "postgresUrl">,
  name: string,
  root: string,
  filling: Filling,
  options: { signal: AbortSignal; say: (line: string) => void },
): Promise<Stage> {
  const stage = await openStage(servers, name, root, options);
  const plan = await planOf(stage, filling);
  const loaders = await Promise.all(Array.from({ length: LOADERS }, () => openLoader(stage.databaseUrl, plan)));
  const [loader] = loaders as [pg.Client];
  try {
    await fill(stage, loaders, plan, options);
  } catch (error) {
    await Promise.all(loaders.map((client) => client.end()));
    await stage.close();
    throw error;
  }
  await Promise.all(loaders.slice(1).map((client) => client.end()));
  const active = plan.bulk - plan.redeemed;
  let drawn = 0;
  let claimable = plan.vouchers - plan.bulk - plan.claimed;
  const numberOf = (place: number) => (place < plan.redeemed ? 2 * place + 1 : plan.redeemed + place);
  const subjectsOf = async (numbers: number[]): Promise<Subject[]> =>
    (await loader.query(textOf("select_subjects", plan), [numbers])).rows;
  const filled: Stage = {
    ...stage,
    samples: [],
    anyTime: () => new Date(Date.parse(plan.endsAt) - Math.random() * 0.9 * plan.redeemed * REDEMPTION_MS - DAY_MS / 4),
    async ensure(supply: Supply, count: number) {
      if (supply === "samples") {
        const numbers = Array.from({ length: count }, () => numberOf(Math.floor(Math.random() * active)));
        filled.samples = await subjectsOf(numbers);
        return;
      }
      const missing = count - stage[supply].length;
      if (missing <= 0) return;
      if (supply === "users" && claimable >= missing) {
        claimable -= missing;
        await stage.addUsers(missing);
      } else if (supply === "vouchers" && active - drawn >= missing) {
        const places = Array.from({ length: missing }, (_, index) => ((drawn + index) * strideOf(active)) % active);
        drawn += missing;
        for (const subject of await subjectsOf(places.map(numberOf))) stage.vouchers.push(subject);
      } else await stage.ensure(supply, count);
    },
    async close() {
      await loader.end();
      await stage.close();
    },
  };
  return filled;
}

function strideOf(places: number): number {
  return STRIDES.find((stride) => places % stride !== 0) as number;
}

async function planOf({ partner }: Stage, { vouchers, redeemed }: Filling) {
  const bulk = vouchers - Math.floor(vouchers / 4);
  if (2 * redeemed > bulk) throw new Error("at most three in eight vouchers can be redeemed");
  const stride = strideOf(redeemed);
  return {
    vouchers,
    redeemed,
    claimed: Math.floor((vouchers - bulk) / 4),
    bulk,
    stride,
    inverse: inverseOf(stride, redeemed),
    endsAt: new Date().toISOString(),
    organizationId: partner.organizationId,
    claimProductId: partner.productId,
    bulkProductId: newId("prd"),
    keyId: partner.keyId,
  };
}

type Plan = Awaited<ReturnType<typeof planOf>>;

/** Finds the number whose product with another number is 1 modulo `modulus` (extended Euclid). */
function inverseOf(value: number, modulus: number): number {
  let [r0, r1, t0, t1] = [modulus, value % modulus, 0, 1];
  while (r1 !== 0) {
    const quotient = Math.floor(r0 / r1);
    [r0, r1, t0, t1] = [r1, r0 - quotient * r1, t1, t0 - quotient * t1];
  }
  return t0 < 0 ? t0 + modulus : t0;
}

/** Opens a connection that has the functions of filled-stage.sql and fires no triggers. */
async function openLoader(connectionString: string, plan: Plan): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  const settings = "session_replication_role = replica; SET synchronous_commit = off; SET maintenance_work_mem = '1GB'";
  await client.query(`SET ${settings}; SET work_mem = '64MB'; SET jit = off`);
  for (const name of FUNCTIONS) await client.query(textOf(name, plan));
  return client;
}

async function fill(
  { db }: Stage,
  loaders: readonly pg.Client[],
  plan: Plan,
  { signal, say }: { signal: AbortSignal; say: (line: string) => void },
): Promise<void> {
  const [loader] = loaders as [pg.Client];
  const startedAt = performance.now();
  // Saves writes. After a power loss, the benchmark starts again, so nothing of value is lost.
  await configure(db, "full_page_writes = off", "autovacuum = off");
  const dropped = [];
  for (const name of ["select_constraints", "select_indexes"]) {
    const { rows } = await db.query<{ drop: string; make: string }>(textOf(name, plan), [TABLES]);
    for (const { drop } of rows) await db.query(drop);
    dropped.push(...rows);
  }
  const load = async (name: string, count: number) => {
    let next = 0;
    await Promise.all(
      loaders.map(async (client) => {
        for (let from = next; from < count; from = next) {
          signal.throwIfAborted();
          next = Math.min(count, from + CHUNK);
          await client.query(textOf(name, plan), [from, next]);
        }
      }),
    );
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    say(`${name}: ${count} rows after ${seconds} s`);
  };
  for (const name of ["insert_bulk_product", "insert_batches", "insert_windows"])
    await loader.query(textOf(name, plan));
  await load("insert_vouchers", plan.vouchers);
  await load("insert_redemptions", plan.redeemed);
  await load("insert_claims", plan.claimed);
  await loader.query(textOf("move_sequence", plan));
  // Creates primary keys before the foreign keys that need them.
  for (const { make } of dropped.toReversed()) {
    signal.throwIfAborted();
    await loader.query(make);
  }
  await db.query("VACUUM (ANALYZE)");
  await configure(db, "full_page_writes = on", "autovacuum = on");
  await db.query("CHECKPOINT");
  const { rows } = await db.query("SELECT pg_size_pretty(pg_database_size(current_database())) AS size");
  say(`filled with ${rows[0].size} after ${Math.round((performance.now() - startedAt) / 1_000)} s`);
}

async function configure(db: pg.Pool, ...settings: string[]): Promise<void> {
  for (const setting of settings) await db.query(`ALTER SYSTEM SET ${setting}`);
  await db.query("SELECT pg_reload_conf()");
}
