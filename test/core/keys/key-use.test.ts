import type pg from "pg";
import { pino } from "pino";
import { beforeAll, describe, expect, it } from "vitest";
import { revokeApiKey } from "../../../src/acts/key/revoke.ts";
import { rotateKey } from "../../../src/acts/key/rotate.ts";
import { hashSecret, makeApiKey } from "../../../src/core/keys/api-keys.ts";
import { KeyAuthenticator } from "../../../src/core/keys/authenticate-key.ts";
import { recordKeyUsage, selectKeys } from "../../../src/core/keys/db/api-keys.ts";
import { BatcherFull } from "../../../src/platform/batching/batcher.ts";
import { partnerClient } from "../../support/client.ts";
import type { TestServers } from "../../support/servers.ts";
import { startApi, type TestApi } from "../../support/service.ts";
import { makeKey, provisioning } from "../../support/supply.ts";
import { START_MS, until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const CODE = "7Q4K-9MZX-2HTB-W8RC";

const service = useService({ apis: [{}, {}], workers: [] });
const { api, servers, partner } = service;
const other = service.apis[1];

beforeAll(async () => {
  // A trigger records every write of a key's last use.
  await servers.db.query(`
    CREATE TABLE key_writes (key_id text NOT NULL);
    CREATE FUNCTION mark_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
      INSERT INTO key_writes VALUES (NEW.key_id);
      RETURN NEW;
    END
    $$;
    CREATE TRIGGER writes_are_marked AFTER INSERT OR UPDATE ON api_key_uses
      FOR EACH ROW EXECUTE FUNCTION mark_write()`);
});

const newKey = () => makeKey(servers.db, partner.organizationId);
const madeUpKey = () => makeApiKey(provisioning(servers.db).randomBytes);

it("an API key's last use is null before the first call, and is recorded soon after the call", async () => {
  const { id, key } = await newKey();
  expect(await findLastUse(id)).toBeNull();
  const before = new Date();
  await partnerClient(api.url, key).lookUp(CODE);
  const usedAt = await until(() => findLastUse(id));
  expect(usedAt.getTime()).toBeGreaterThanOrEqual(before.getTime() - 1_000);
  expect(usedAt.getTime()).toBeLessThanOrEqual(Date.now() + 1_000);
});

it("all processes together write an API key's last use at most once a minute", async () => {
  const { id, key } = await newKey();
  const clients = [api, other].map(({ url }) => partnerClient(url, key));
  await Promise.all(clients.flatMap((client) => Array.from({ length: 20 }, () => client.lookUp(CODE))));
  await until(async () => (await countWrites(id)) > 0);
  await Promise.all([api, other].map((each) => untilKeyRead(each, key, 2)));
  expect(await countWrites(id)).toBe(1);
});

it("an API key's last use is written once when many processes record it at the same time", async () => {
  const keys = await Promise.all(Array.from({ length: 5 }, newKey));
  const hashes = keys.map(({ key }) => hashSecret(key));
  // The calls name the keys in opposite orders. No call waits for another, so there is no deadlock.
  await Promise.all(
    Array.from({ length: 20 }, (_, n) => recordKeyUsage(servers.db, n % 2 === 0 ? hashes : hashes.toReversed())),
  );
  for (const { id } of keys) expect(await countWrites(id)).toBe(1);
});

it("an API key's last use is written again after a minute, and not earlier", async () => {
  const { id, key } = await newKey();
  const hashes = [hashSecret(key)];
  await backdateUse(id, 55);
  const early = await findLastUse(id);
  await recordKeyUsage(servers.db, hashes);
  expect(await findLastUse(id)).toEqual(early);
  await backdateUse(id, 61);
  const late = await findLastUse(id);
  await recordKeyUsage(servers.db, hashes);
  expect((await findLastUse(id))?.getTime()).toBeGreaterThan(late?.getTime() ?? 0);
});

it("each secret of a rotated API key has its own last use, and earlier uses belong to the old secret", async () => {
  const { id, key } = await newKey();
  await backdateUse(id, 61);
  const before = await findLastUse(id);
  const { key: rotated } = await rotateKey.run(provisioning(servers.db), id, { grace: 600_000 });
  expect(await findUses(id)).toEqual({ current: null, old: before });
  await recordKeyUsage(servers.db, [hashSecret(key)]);
  const { old } = await findUses(id);
  expect(old?.getTime()).toBeGreaterThan(before?.getTime() ?? 0);
  expect(await findUses(id)).toEqual({ current: null, old });
  await recordKeyUsage(servers.db, [hashSecret(rotated)]);
  expect(await findUses(id)).toEqual({ current: expect.any(Date), old });
});

it("a call within a minute of its key's recorded last use causes no write", async () => {
  const { id, key } = await newKey();
  await backdateUse(id, 10);
  expect(await countQueries(api, "record_key_usage", () => untilKeyRead(api, key, 3))).toBe(0);
});

it("the last use of a revoked or mistyped key is not recorded", async () => {
  const { id, key } = await newKey();
  await revokeApiKey.run(provisioning(servers.db), id, {});
  expect((await partnerClient(api.url, key).lookUp(CODE)).status).toBe(401);
  expect((await partnerClient(api.url, `${key}x`).lookUp(CODE)).status).toBe(401);
  await untilLaterUseIsRecorded(api);
  expect(await findLastUse(id)).toBeNull();
});

it("a locked row of an API key's last use delays no call", async () => {
  const { id, key } = await newKey();
  await backdateUse(id, 61);
  const before = await findLastUse(id);
  const blocker = await servers.db.connect();
  try {
    await blocker.query("BEGIN");
    await blocker.query("SELECT 1 FROM api_key_uses WHERE key_id = $1 FOR UPDATE", [id]);
    expect((await partnerClient(other.url, key).lookUp(CODE)).status).toBe(404);
    await untilLaterUseIsRecorded(other);
    expect(await findLastUse(id)).toEqual(before);
  } finally {
    blocker.release(true);
  }
});

it("a call succeeds if its key's last use cannot be written", async () => {
  await servers.db.query("ALTER TABLE api_key_uses ADD CONSTRAINT writes_fail CHECK (false) NOT VALID");
  const failing = await startApi(servers);
  const { id, key } = await newKey();
  // After a failed write, the API records no uses for a minute.
  expect(await countQueries(failing, "record_key_usage", () => untilKeyRead(failing, key, 3))).toBe(1);
  await servers.db.query("ALTER TABLE api_key_uses DROP CONSTRAINT writes_fail");
  expect(await findLastUse(id)).toBeNull();
});

describe("the cache of API keys", () => {
  const open = (pool: Pick<TestServers["db"], "query">) =>
    new KeyAuthenticator(pool as TestServers["db"], pino({ level: "silent" }));

  /** Opens a new cache of keys. `queries` has an entry per query: the hashes of the secrets that the query looks up. */
  function openRecordingQueries() {
    const queries: string[][] = [];
    const query = (config: pg.QueryConfig<Buffer[][]>) => {
      if (config.name === "find_keys_by_secret")
        queries.push((config.values?.[0] ?? []).map((hash) => hash.toString("hex")));
      return servers.db.query(config);
    };
    return { keys: open({ query } as unknown as TestServers["db"]), queries };
  }

  it("a flood of invented keys does not delay a valid key", async () => {
    const { keys, queries } = openRecordingQueries();
    const { id, key } = await newKey();
    const hash = hashSecret(key);
    expect(await keys.authenticate(key)).not.toBeNull();
    // Repeats until the process looks the valid key up again during the flood.
    await until(async () => {
      queries.splice(0);
      const flood = Promise.allSettled(Array.from({ length: 9_000 }, () => keys.authenticate(madeUpKey())));
      expect(await keys.authenticate(key)).toMatchObject({ id });
      const outcomes = await flood;
      const refused = outcomes.filter((outcome) => outcome.status === "rejected");
      // One address may use three quarters of the 10,000 waiting places, so 1,500 of the 9,000 calls are refused.
      expect(refused.length).toBe(1_500);
      for (const { reason } of refused) expect(reason).toBeInstanceOf(BatcherFull);
      return queries.some((hashes) => hashes.length === 1 && hashes[0] === hash);
    });
    await keys.close();
  });

  it("a new key is looked up despite a flood of invented keys from the same address", async () => {
    const { keys, queries } = openRecordingQueries();
    const flooding = "203.0.113.7";
    const flood = Promise.allSettled(Array.from({ length: 5_000 }, () => keys.authenticate(madeUpKey(), flooding)));
    for (const address of [flooding, "203.0.113.8"]) {
      const { id, key } = await newKey();
      expect(await keys.authenticate(key, address)).toMatchObject({ id });
    }
    expect((await flood).every((outcome) => outcome.status === "fulfilled")).toBe(true);
    // A batch has 256 keys.
    expect(queries.length).toBeLessThanOrEqual(30);
    await keys.close();
  });

  it("an unknown key is looked up in the database for each call", async () => {
    const client = partnerClient(api.url, madeUpKey());
    const queries = await countQueries(api, "find_keys_by_secret", async () => {
      for (let i = 0; i < 5; i++) expect((await client.lookUp(CODE)).body.code).toBe("unknown_key");
    });
    expect(queries).toBe(5);
  });
});

async function countWrites(keyId: string): Promise<number> {
  const { rows } = await servers.db.query("SELECT count(*)::int AS count FROM key_writes WHERE key_id = $1", [keyId]);
  return rows[0].count;
}

/** Waits until a later use is recorded. Uses are recorded in order, so earlier uses were recorded or skipped. */
async function untilLaterUseIsRecorded({ url }: TestApi): Promise<void> {
  const { id, key } = await newKey();
  // If a write fails, as on a busy machine, the process records no uses for a minute.
  await until(async () => {
    await partnerClient(url, key).lookUp(CODE);
    return findLastUse(id);
  }, 2 * START_MS);
}

async function findLastUse(keyId: string): Promise<Date | null> {
  return (await findKey(keyId))?.lastUsedAt ?? null;
}

async function findUses(keyId: string) {
  const key = await findKey(keyId);
  return { current: key?.currentSecretUsedAt, old: key?.oldSecretsUsedAt };
}

async function findKey(keyId: string) {
  return (await selectKeys(servers.db, partner.organizationId)).find((key) => key.id === keyId);
}

async function backdateUse(keyId: string, seconds: number): Promise<void> {
  await servers.db.query(
    `INSERT INTO api_key_uses (key_id, last_used_at) VALUES ($1, clock_timestamp() - make_interval(secs => $2::int))
     ON CONFLICT (key_id) DO UPDATE SET last_used_at = EXCLUDED.last_used_at`,
    [keyId, seconds],
  );
}

/** Runs `work`, and returns how often the API sent the named statement meanwhile. */
async function countQueries(
  by: TestApi,
  name: string,
  work: (count: () => number) => Promise<unknown>,
): Promise<number> {
  const { pool } = by.ctx;
  const query = pool.query;
  let count = 0;
  pool.query = ((...args: [{ name?: string }]) => {
    if (args[0].name === name) count += 1;
    return (query as (...args: unknown[]) => unknown).apply(pool, args);
  }) as typeof pool.query;
  try {
    await work(() => count);
  } finally {
    pool.query = query;
  }
  return count;
}

/** Looks a code up until the API has read the key this many times. The API reads a used key every half second. */
function untilKeyRead(by: TestApi, key: string, times: number): Promise<number> {
  return countQueries(by, "find_keys_by_secret", async (count) => {
    await until(async () => {
      expect((await partnerClient(by.url, key).lookUp(CODE)).status).toBe(404);
      return count() >= times;
    });
  });
}
