import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import pg from "pg";
import { freePort } from "../../../src/local/ports.ts";
import { type LocalPostgres, postgresUrl, startPostgres, stopPostgres } from "../../../src/local/postgres.ts";
import { type LocalRedis, redisUrl, startRedis, stopRedis } from "../../../src/local/redis.ts";
import { mintUserToken, useLocalUserKeys } from "../../../src/local/user-keys.ts";

const run = promisify(execFile);

/** One contender's Redis. */
export interface BenchRedis {
  redisUrl: string;
  /** The ids of Redis's processes. Empty if Redis runs in a container, whose CPU time cannot be read. */
  redisPids: readonly number[];
}

export type BenchServers = Awaited<ReturnType<typeof openBenchServers>>;

/**
 * Starts Postgres and Redis in a temporary folder, with the durable settings of `npm start`. Postgres gets a quarter of
 * the machine's memory for `shared_buffers` (docs/servers.md, "Postgres settings").
 */
export async function openBenchServers(say: (line: string) => void) {
  const directory = mkdtempSync(join(tmpdir(), "voucher-bench-"));
  // Under root, Postgres runs as another user, who must read this folder.
  chmodSync(directory, 0o755);
  const memoryMb = Math.floor(totalmem() / 4 / 2 ** 20);
  const postgres: LocalPostgres = {
    directory: join(directory, "postgres"),
    port: await freePort(),
    password: "bench",
    // No checkpoint during a run. After a checkpoint, the first change of each page writes the whole page to the log,
    // which would burden the next contender, and a slow contender more per redeem.
    settings: [`shared_buffers=${memoryMb}MB`, "max_wal_size=16GB", "checkpoint_timeout=1d"],
  };
  const redis: LocalRedis = { directory: join(directory, "redis"), port: await freePort() };
  /** Stops everything, even after a failure. @throws Error the first failure. */
  const close = async () => {
    const stopping = [existsSync(postgres.directory) && stopPostgres(postgres), stopRedis(redis)];
    const failed = (await Promise.allSettled(stopping)).find(({ status }) => status === "rejected");
    rmSync(directory, { recursive: true, force: true });
    if (failed?.status === "rejected") throw failed.reason;
  };
  try {
    await startPostgres(postgres);
    await startRedis(redis, say);
    const info = await withRedis(redisUrl(redis), (client) => client.info("server"));
    const [{ server_version }] = await query(postgresUrl(postgres), "SHOW server_version");
    // If Redis runs in a container, the host has no process of Redis with this id.
    const pid = Number(/^process_id:(\d+)/m.exec(info)?.[1]);
    const command = existsSync(`/proc/${pid}/comm`) ? readFileSync(`/proc/${pid}/comm`, "utf8") : "";
    const redisPids = /redis|valkey/.test(command) ? [pid] : [];
    let redisDatabases = 0;
    return {
      directory,
      postgresPid: Number(readFileSync(join(postgres.directory, "postmaster.pid"), "utf8").split("\n")[0]),
      versions: `PostgreSQL ${server_version}, Redis ${/^redis_version:(\S+)/m.exec(info)?.[1]}`,
      postgresUrl: (database?: string) => postgresUrl(postgres, database),
      /** Returns another Redis database at each call, because a worker must not run another contender's jobs. */
      nextRedis: (): BenchRedis => ({ redisUrl: redisUrl(redis, ++redisDatabases), redisPids }),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What a request concerns: a voucher of the partner, or a user. */
export interface Subject {
  id: string;
  /** The voucher's code, or an empty text for users. */
  code: string;
  /** The user's token, or an empty text for vouchers. */
  token: string;
}

export type Supply = "vouchers" | "users" | "samples";

/** The database and unused test data, in random order, for the contenders of one git working copy. */
export interface Stage {
  /** The working copy whose `voucherctl` made the database. */
  root: string;
  databaseUrl: string;
  db: pg.Pool;
  /** The folder for logs and keys. */
  directory: string;
  /** The contenders' environment variables, apart from those that `environmentOf` adds, such as DATABASE_URL. */
  env: Record<string, string>;
  /** The organization and its keys. `readKey` may only read, as the portal requires. */
  partner: { productId: string; organizationId: string; keyId: string; key: string; readKey: string };
  vouchers: Subject[];
  /** Subjects that are only read, and so never used up: the vouchers, or a sample of a filled database. */
  samples: Subject[];
  /** Users. A voucher can be claimed for each of them. */
  users: Subject[];
  /** Creates more subjects if there are fewer than `count`. In a filled database, it chooses other samples. */
  ensure(supply: Supply, count: number): Promise<void>;
  /** A time with redemptions: a random time in a filled database, else the present. */
  anyTime(): Date;
  /** Creates users for existing vouchers. */
  addUsers(count: number): Promise<void>;
  close(): Promise<void>;
}

/** Daily limits above what any run redeems. */
const UNREACHED_CAPS = ["--max-per-day", "1000000000", "--max-amount-per-day", "100000000"];
const VALID_UNTIL = "2040-01-01T00:00:00Z";
const ISSUE_MIN = 5_000;
/** The lifetime of users' tokens: longer than any run. Milliseconds. */
const TOKEN_MS = 86_400_000;
export const BENCH_OPS_TOKEN = "bench-ops-token-of-decent-length";
/** Turns every optional feature on. The limits are so high that no caller reaches them. */
const EVERYTHING_ON = {
  LOG_LEVEL: "info",
  RATE_LIMIT_RPS: "1000000",
  MISS_LIMIT_PER_MINUTE: "60",
  OPS_TOKEN: BENCH_OPS_TOKEN,
  RESERVATION_TOKEN_SECRET: "bench-reservation-token-secret",
  BASE_URL: "http://localhost:3000",
};

/** Creates a database and test data with the `voucherctl` of a working copy. */
export async function openStage(
  servers: Pick<BenchServers, "directory" | "postgresUrl">,
  name: string,
  root: string,
  { signal, say, capped = false }: { signal: AbortSignal; say: (line: string) => void; capped?: boolean },
): Promise<Stage> {
  const directory = join(servers.directory, name);
  mkdirSync(directory);
  await query(servers.postgresUrl(), `CREATE DATABASE ${name}`);
  const databaseUrl = servers.postgresUrl(name);
  const command = commandOf({ root, databaseUrl, signal });
  const voucherctl = async (...args: string[]) => JSON.parse(await command("src/cli/main.ts", ...args, "--json"));
  await command("src/cli/migrate.ts");
  const partner = await createPartner(voucherctl, capped ? UNREACHED_CAPS : []);
  const userKeysUrl = await useLocalUserKeys(directory);
  const db = new pg.Pool({ connectionString: databaseUrl, max: 2 });
  // Ignores the loss of an idle connection, because the next statement reports it.
  db.on("error", () => undefined);

  /** Issues vouchers. `how` has options of `batch issue`: a validity, or a file for the codes. */
  const issue = async (count: number, ...how: string[]): Promise<Subject[]> => {
    const batch = ["batch", "issue", "--product", partner.productId, "--count", String(count)];
    const { id } = await voucherctl(...batch, "--valid-until", VALID_UNTIL, ...how);
    const select = "SELECT id, code, '' AS token FROM vouchers WHERE batch_id = $1 ORDER BY random()";
    const { rows } = await db.query(select, [id]);
    await tidy(stage);
    say(`${count} vouchers issued`);
    return rows;
  };
  const stage: Stage = {
    root,
    databaseUrl,
    db,
    directory,
    vouchers: [],
    get samples() {
      return stage.vouchers;
    },
    users: [],
    env: { ...EVERYTHING_ON, AUTH_JWKS_URL: userKeysUrl },
    partner,
    async ensure(supply, count) {
      const missing = count - stage[supply].length;
      if (missing <= 0) return;
      if (supply !== "users") {
        const issued = await issue(Math.max(missing, ISSUE_MIN), "--out", join(directory, "codes.csv"));
        for (const voucher of issued) stage.vouchers.push(voucher);
        return;
      }
      await issue(missing, "--claim");
      await stage.addUsers(missing);
    },
    anyTime: () => new Date(),
    async addUsers(count) {
      for (let made = 0; made < count; made++) {
        const id = `user-${crypto.randomUUID()}`;
        stage.users.push({ id, code: "", token: await mintUserToken(directory, id, TOKEN_MS) });
      }
    },
    close: () => db.end(),
  };
  return stage;
}

function commandOf({ root, databaseUrl, signal }: { root: string; databaseUrl: string; signal: AbortSignal }) {
  // The commands need no Redis. With this address, they start no embedded one.
  const env = { PATH: process.env.PATH ?? "", DATABASE_URL: databaseUrl, REDIS_URL: "redis://127.0.0.1:1" };
  return async (script: string, ...args: string[]) =>
    (await run(process.execPath, [script, ...args], { cwd: root, env, signal })).stdout;
}

/** Creates an organization with a key and a product. @param keyOptions of `key create`, for the key that redeems. */
async function createPartner(
  voucherctl: (...args: string[]) => Promise<Record<"id" | "key", string>>,
  keyOptions: readonly string[],
): Promise<Stage["partner"]> {
  const scopes = ["--scope", "voucher.read", "--scope", "voucher.redeem"];
  const { id: organizationId } = await voucherctl("org", "create", "--name", "Bench");
  const { id: keyId, key } = await voucherctl("key", "create", "--org", organizationId, ...scopes, ...keyOptions);
  const { key: readKey } = await voucherctl("key", "create", "--org", organizationId, "--scope", "voucher.read");
  const { id: brandId } = await voucherctl("brand", "create", "--org", organizationId, "--name", "Bench");
  const { id: productId } = await voucherctl(
    ...["product", "create", "--brand", brandId, "--key", "pass", "--name", "Bench Pass", "--type", "Subscription"],
    ...["--retail-price-usd", "29.90", "--price-usd", "19.90", "--benefit-months", "3"],
  );
  return { productId, organizationId, keyId, key, readKey };
}

/** Vacuums a database, as Postgres would soon do by itself. */
export async function tidy({ db }: Pick<Stage, "db">): Promise<void> {
  await db.query("VACUUM (ANALYZE)");
}

/** Ends every reservation as if its time had passed, and deletes the leases in a contender's Redis database. */
export async function endReservations({ db }: Stage, redisUrl: string): Promise<void> {
  await db.query("UPDATE reservations SET state = 'Expired', ended_at = clock_timestamp() WHERE state = 'Live'");
  await withRedis(redisUrl, async (redis) => {
    for await (const keys of redis.scanStream({ match: "lease:*", count: 1_000 })) {
      if (keys.length > 0) await redis.unlink(keys);
    }
  });
}

async function withRedis<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url);
  return await work(redis).finally(() => redis.disconnect());
}

// biome-ignore lint/suspicious/noExplicitAny: rows of any statement.
async function query(url: string, statement: string): Promise<any[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return (await client.query(statement).finally(() => client.end())).rows;
}
