import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { explain } from "../../../src/cli/explain.ts";
import { explainMigration } from "../../../src/cli/explain-migration.ts";
import { connectClient } from "../../../src/platform/db/client.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { isDatabaseUnavailable } from "../../../src/platform/db/transaction.ts";
import { partnerClient, send } from "../../support/client.ts";
import { type OwnPostgres, openOwnPostgres } from "../../support/own-postgres.ts";
import { makeRedisTls } from "../../support/redis-tls.ts";
import { withLogin } from "../../support/servers.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

// Uses a Postgres server that has TLS with a private authority, as managed servers do.

const { servers, keys, startApi, issue } = useService();
let folder: string;
let authority: string;
let postgres: OwnPostgres;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "voucher-postgres-tls-"));
  chmodSync(folder, 0o755);
  authority = makeRedisTls(folder).caFile;
  const [certificate, key] = [join(folder, "redis.crt"), join(folder, "redis.key")];
  // Postgres runs as another user when root runs the tests.
  if (process.getuid?.() === 0) execFileSync("chown", ["postgres", key]);
  const hosts = "listen_addresses=127.0.0.1,127.0.0.2";
  postgres = await openOwnPostgres([hosts, "ssl=on", `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`]);
  await postgres.superuser.query("CREATE ROLE full LOGIN PASSWORD 'right' CONNECTION LIMIT 0");
});

afterAll(async () => {
  await postgres.close();
  rmSync(folder, { recursive: true });
});

const CONFIG = 78;
const UNAVAILABLE = 69;

it.each<[string, () => string, RegExp, number]>([
  ["a wrong password", () => as("postgres", "wrong"), /password authentication failed .*Write the user and/, CONFIG],
  ["no password", () => as("postgres", ""), /client password must be a string\. Write the user and/, CONFIG],
  ["an unknown user", () => as("nobody", "x"), /password authentication failed for user "nobody"/, CONFIG],
  ["no such database", () => postgres.url("absent"), /"absent" does not exist\. Create this database/, CONFIG],
  ["no free connection", () => as("full", "right"), /too many connections .*Allow more connections/, UNAVAILABLE],
  [
    "an unknown authority",
    () => `${postgres.url("postgres")}?sslmode=require`,
    /certificate.* Name the file with the certificate of its authority in NODE_EXTRA_CA_CERTS/,
    CONFIG,
  ],
  [
    "a host for which the certificate is not",
    () => `${postgres.url("postgres").replace("127.0.0.1", "127.0.0.2")}?sslmode=verify-full&sslrootcert=${authority}`,
    /127\.0\.0\.2 is not in the cert's list.* Write a host/,
    CONFIG,
  ],
  [
    "no TLS on the server",
    () => `${servers.ownerUrl}?sslmode=verify-full`,
    /does not support SSL connections\. Leave sslmode out of the address, and PGSSLMODE/,
    CONFIG,
  ],
])("a connection that the server refuses for %s ends with one sentence and its remedy", async (_, url, words, code) => {
  const error = await connectClient(url(), "test").catch((caught: unknown) => caught);
  expect(isDatabaseUnavailable(error)).toBe(true);
  expect(explain(error)).toEqual({ message: expect.stringMatching(words), exitCode: code });
  expect(explain(error).message).toMatch(/^Postgres at 127\.0\.0\.\d:\d+ cannot be used: /);
  const migration = await migrateDatabase(url()).catch((caught: unknown) => caught);
  expect(explainMigration(migration)).toEqual({ message: explain(error).message, exitCode: code });
});

it.each([
  "sslmode=verify-full",
  "sslmode=require",
  "uselibpqcompat=true&sslmode=verify-ca",
  "sslmode=no-verify",
])("connectClient accepts a server certificate from a private CA with sslrootcert and %s", async (mode) => {
  const client = await connectClient(`${postgres.url("postgres")}?${mode}&sslrootcert=${authority}`, "test");
  expect((await client.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")).rows).toEqual([
    { ssl: true },
  ]);
  await client.end();
});

it.skipIf(inject("logins").api === null)(
  "a changed password causes 503 in a running process, and /readyz says why",
  async () => {
    const role = `rotated_${process.pid}`;
    const set = (password: string) => servers.db.query(`ALTER ROLE ${role} PASSWORD '${password}'`);
    await servers.db.query(`CREATE ROLE ${role} LOGIN PASSWORD 'first' IN ROLE ${inject("logins").api?.name}`);
    try {
      const api = await startApi({ DATABASE_URL: withLogin(servers.ownerUrl, { name: role, password: "first" }) });
      const till = partnerClient(api.url, keys.till.key);
      const { code } = await issue();
      await until(async () => (await till.lookUp(code)).status === 200);
      await set("second");
      await servers.db.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [role]);
      const refused = await until(async () => {
        const answer = await till.lookUp(code);
        return answer.status === 200 ? null : answer;
      });
      expect(refused).toMatchObject({ status: 503, body: { code: "unavailable" } });
      const readiness = await send("GET", `${api.url}/readyz`);
      expect(readiness).toMatchObject({ status: 503, body: { postgres: "unavailable" } });
      expect(readiness.body.error).toMatch(
        /password authentication failed for user .* Write the user and the password/,
      );
      await set("first");
      await until(async () => (await till.lookUp(code)).status === 200);
      await api.close();
    } finally {
      await servers.db.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [role]);
      await servers.db.query(`DROP ROLE ${role}`);
    }
  },
);

function as(user: string, password: string): string {
  return Object.assign(new URL(postgres.url("postgres")), { username: user, password }).href;
}
