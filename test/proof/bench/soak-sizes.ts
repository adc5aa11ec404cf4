import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import type { RunningContender } from "./contenders.ts";
import { withChildren } from "./process-usage.ts";
import type { Measured } from "./soak-growth.ts";
import type { BenchServers, Stage } from "./stage.ts";

/** Every table, index and TOAST table of the service. `owner` is its table. */
const RELATIONS = `
  SELECT coalesce(o.relname, t.relname, c.relname)::text AS owner, c.relname::text AS name,
         pg_relation_size(c.oid)::float8 AS bytes, (s.n_live_tup)::float8 AS rows
    FROM pg_class AS c
    LEFT JOIN pg_index AS x ON x.indexrelid = c.oid
    LEFT JOIN pg_class AS o ON o.oid = x.indrelid AND o.relkind = 'r'
    LEFT JOIN pg_class AS t ON t.reltoastrelid = coalesce(x.indrelid, c.oid)
    LEFT JOIN pg_stat_user_tables AS s ON s.relid = c.oid
   WHERE c.relkind IN ('r', 'i', 't')
     AND coalesce(o.relnamespace, t.relnamespace, c.relnamespace) = 'public'::regnamespace`;
/** The number of keys that SCAN reads in one round trip. */
const SCAN_COUNT = 1_000;
/** Matches ids, numbers and random parts of a Redis key. A pattern has `*` in their place. */
const VARIABLE = /(?:[a-z]{3}_)?[0-9a-hjkmnp-tv-z]{26}|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{12,}|\d+/g;

/** Opens a reader of the sizes of all data that the service stores, and of its processes' memory. */
export async function openSizes({ db }: Stage, running: RunningContender, { postgresPid }: BenchServers) {
  const redis = new Redis(running.redisUrl);
  // The next reading reports it.
  redis.on("error", () => undefined);
  return {
    async read(): Promise<Measured[]> {
      return [...(await readRelations(db)), ...(await readKeys(redis)), ...(await readMemory(running, postgresPid))];
    },
    close: () => redis.disconnect(),
  };
}

async function readRelations(db: Stage["db"]): Promise<Measured[]> {
  const { rows } = await db.query<{ owner: string; name: string; bytes: number; rows: number | null }>(RELATIONS);
  return rows.flatMap(({ owner, name, bytes, rows: count }): Measured[] => [
    { kind: "table", owner, name: `${name}, bytes`, value: bytes },
    ...(count === null ? [] : [{ kind: "table" as const, owner, name: `${name}, rows`, value: count }]),
  ]);
}

async function readKeys(redis: Redis): Promise<Measured[]> {
  const found = new Map<string, { keys: number; bytes: number }>();
  for await (const keys of redis.scanStream({ count: SCAN_COUNT }) as AsyncIterable<string[]>) {
    const sizes = await Promise.all(keys.map((key) => redis.memory("USAGE", key)));
    for (const [index, key] of keys.entries()) {
      const pattern = key.replaceAll(VARIABLE, "*");
      const sum = found.get(pattern) ?? { keys: 0, bytes: 0 };
      found.set(pattern, { keys: sum.keys + 1, bytes: sum.bytes + (sizes[index] ?? 0) });
    }
  }
  return [...found].flatMap(([pattern, { keys, bytes }]): Measured[] => [
    { kind: "key", owner: pattern, name: `${pattern}, keys`, value: keys },
    { kind: "key", owner: pattern, name: `${pattern}, bytes`, value: bytes },
  ]);
}

/** Measures the memory of each process, and the heaps of Node processes. For Postgres, without shared memory. */
async function readMemory(running: RunningContender, postgresPid: number): Promise<Measured[]> {
  const of = (kind: Measured["kind"], name: string, value: number): Measured => ({ kind, owner: name, name, value });
  const memory = (whose: string, pids: readonly number[], field: string) =>
    of(
      "memory",
      `memory of ${whose}, bytes`,
      pids.reduce((sum, pid) => sum + readStatus(pid, field), 0),
    );
  const heaps = running.metricsPorts.map(async (port, index) => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const bytes = Number(/^nodejs_heap_size_used_bytes\S* (\S+)/m.exec(text)?.[1]);
    return of("heap", `heap of process ${index + 1}, bytes`, bytes);
  });
  return [
    memory("APIs", running.apiPids, "VmRSS"),
    memory("workers", running.workerPids, "VmRSS"),
    memory("Redis", running.redisPids, "VmRSS"),
    memory("Postgres that is not shared", withChildren(postgresPid), "RssAnon"),
    ...(await Promise.all(heaps)),
  ];
}

/** Reads a field of proc_pid_status(5), in bytes. Returns 0 if the process has ended. */
function readStatus(pid: number, field: string): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}
