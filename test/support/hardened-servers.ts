import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { Redis } from "ioredis";
import { migrateDatabase } from "../../src/platform/db/migrate.ts";
import { openPool } from "../../src/platform/db/pool.ts";
import { openLogger } from "../../src/platform/logger.ts";
import { hasProgram } from "./has-program.ts";
import { type OwnPostgres, openOwnPostgres } from "./own-postgres.ts";
import { startPgBouncer } from "./pgbouncer.ts";
import { makeRedisTls, type RedisTls } from "./redis-tls.ts";
import type { TestServers } from "./servers.ts";
import { findSteadyPort } from "./steady-port.ts";
import { untilStarted } from "./until.ts";
import { openVoucherctl } from "./voucherctl.ts";

/** Logins by name. The service's own logins are the roles that `voucherctl db roles` creates. */
const LOGINS = {
  keeper: "the-owners-own-password",
  pva_api: "the-processes-own",
  pva_admin: "the-admins-own-password",
};

/**
 * Starts servers with strict settings: Postgres behind PgBouncer, and Redis, by TLS with a private authority; an owner
 * who is no superuser, functions that PUBLIC may not run, a Redis user with few rights.
 */
export async function openHardenedServers(servers: TestServers) {
  const directory = mkdtempSync(join(tmpdir(), "voucher-hardened-"));
  chmodSync(directory, 0o755);
  const tls = makeRedisTls(directory);
  const authorities = getCACertificates("default");
  // Makes this process trust the authority. The service's processes read NODE_EXTRA_CA_CERTS.
  setDefaultCACertificates([...authorities, readFileSync(tls.caFile, "utf8")]);
  const redis = await startRedis(tls, directory);
  const postgres = await startPostgres(directory);
  const pooler = hasProgram("pgbouncer") ? await startPooler(postgres, tls, directory) : null;
  const urlOf = (name: keyof typeof LOGINS) => {
    const direct = postgres.url("vouchers", { name, password: LOGINS[name] });
    return `${pooler === null ? direct : pooler.through(direct)}?sslmode=verify-full&sslrootcert=${tls.caFile}`;
  };
  const ownerUrl = urlOf("keeper");
  await migrateDatabase(ownerUrl);
  const passwords = { PVA_API_PASSWORD: LOGINS.pva_api, PVA_ADMIN_PASSWORD: LOGINS.pva_admin };
  const roles = await openVoucherctl({ adminUrl: ownerUrl, redisUrl: "" }).run("db roles", passwords);
  if (roles.exitCode !== 0) throw new Error(roles.stderr);
  const log = openLogger("silent", "test");
  const pool = { databaseUrl: ownerUrl, max: 2, applicationName: "test", deployment: null, log } as const;
  const db = openPool({ ...pool, use: "administration" });
  return {
    /** Addresses for the processes of the service. */
    servers: {
      ...servers,
      databaseUrl: urlOf("pva_api"),
      adminUrl: urlOf("pva_admin"),
      redisUrl: redis.url,
      ownerUrl,
      db,
    },
    db,
    tls,
    /** A connection of Redis's operator. */
    operator: redis.operator,
    async close() {
      setDefaultCACertificates(authorities);
      await db.end();
      await pooler?.close();
      await postgres.close();
      await redis.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function startRedis(tls: RedisTls, directory: string) {
  const port = await findSteadyPort();
  const place = ["--bind", "127.0.0.1", "--tls-port", String(port), "--dir", directory, "--save", ""];
  const server = spawn("redis-server", [...tls.settings, ...place], { stdio: "ignore" });
  const operator = new Redis({ port, ...tls.admin, tls: { ca: readFileSync(tls.caFile) }, retryStrategy: () => 50 });
  operator.on("error", () => undefined);
  await untilStarted(() => operator.status === "ready");
  return {
    url: `rediss://${tls.login}127.0.0.1:${port}`,
    operator,
    async close() {
      operator.disconnect();
      server.kill("SIGKILL");
      await once(server, "exit");
    },
  };
}

/** Postgres and PgBouncer use the certificate of {@link makeRedisTls} too, because it is for the same host. */
const certificateIn = (directory: string) => [join(directory, "redis.crt"), join(directory, "redis.key")] as const;

async function startPostgres(directory: string): Promise<OwnPostgres> {
  const [certificate, key] = certificateIn(directory);
  // Postgres and PgBouncer run as another user when the tests run as root.
  if (process.getuid?.() === 0) execFileSync("chown", ["postgres", key]);
  const postgres = await openOwnPostgres(["ssl=on", `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`]);
  const { superuser } = postgres;
  await superuser.query(`CREATE ROLE keeper LOGIN CREATEROLE PASSWORD '${LOGINS.keeper}'`);
  await superuser.query("ALTER DEFAULT PRIVILEGES FOR ROLE keeper REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC");
  await superuser.query("CREATE DATABASE vouchers OWNER keeper");
  await superuser.query("REVOKE ALL ON DATABASE vouchers FROM PUBLIC");
  return postgres;
}

function startPooler(postgres: OwnPostgres, tls: RedisTls, directory: string) {
  const logins = Object.entries(LOGINS).map(([name, password]) => postgres.url("vouchers", { name, password }));
  const [certificate, key] = certificateIn(directory);
  return startPgBouncer({ port: new URL(logins[0] ?? "").port, logins }, [
    "client_tls_sslmode = require",
    `client_tls_cert_file = ${certificate}`,
    `client_tls_key_file = ${key}`,
    "server_tls_sslmode = verify-full",
    `server_tls_ca_file = ${tls.caFile}`,
  ]);
}
