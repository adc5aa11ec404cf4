import { randomBytes } from "node:crypto";
import type pg from "pg";
import { type AppliedGrantees, applyGrants, DEFAULT_PREFIX } from "../../src/acts/roles/apply-roles.ts";
import { WING_GRANTS } from "../../src/open/wings.ts";
import { inTransaction } from "../../src/platform/db/transaction.ts";
import { pooledRandomBytes } from "../../src/platform/random.ts";
import { openLastingPool } from "./lasting-pool.ts";

export interface Login {
  name: string;
  password: string;
}

/** The roles' logins. Null if the server's role may not create roles: the tests then run as the owner. */
export interface TestLogins {
  api: Login | null;
  log: Login | null;
  admin: Login | null;
}

/**
 * Grants the roles their rights in a migrated database and creates a login with exactly these rights for each. Clones
 * of the database have the same rights, because roles belong to the server. `remove` drops the created roles once the
 * databases are dropped.
 * @param databaseUrl of the database's owner.
 */
export async function makeTestLogins(
  databaseUrl: string,
): Promise<{ logins: TestLogins; remove: (databaseUrl: string) => Promise<void> }> {
  return withPool(databaseUrl, async (pool) => {
    if (!(await mayCreateRoles(pool))) {
      console.log("The role of DATABASE_URL may not create roles: the tests run the service as the owner.");
      return { logins: { api: null, log: null, admin: null }, remove: async () => undefined };
    }
    // Test runs at the same time may share a server, so each has its own roles.
    const prefix = `pva_test_${process.pid}`;
    const { roles } = await makeGrantees(pool, null, prefix);
    const logins = {
      api: await makeLogin(pool, `${prefix}_api`),
      log: await makeLogin(pool, `${prefix}_log`),
      admin: await makeLogin(pool, `${prefix}_admin`),
    };
    const made = [...Object.values(logins), ...roles].map(({ name }) => name);
    return { logins, remove: (url) => withPool(url, (later) => removeRoles(later, made)) };
  });
}

/** Creates the roles like `voucherctl db roles`, but no audit entry. A password lets processes log in as them. */
export function makeGrantees(
  owner: pg.Pool,
  password: string | null = null,
  prefix: string = DEFAULT_PREFIX,
  grants: readonly URL[] = WING_GRANTS,
): Promise<AppliedGrantees> {
  const passwords = { api: password, log: password, admin: null };
  return inTransaction(owner, (tx) => applyGrants(tx, pooledRandomBytes, { prefix, passwords, grants }));
}

async function mayCreateRoles(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ may: boolean }>(
    "SELECT rolsuper OR rolcreaterole AS may FROM pg_roles WHERE rolname = current_user",
  );
  return rows[0]?.may === true;
}

async function makeLogin(pool: pg.Pool, role: string): Promise<Login> {
  const login = { name: `${role}_login`, password: randomBytes(16).toString("hex") };
  await pool.query(`CREATE ROLE ${login.name} LOGIN PASSWORD '${login.password}' IN ROLE ${role}`);
  // Lets an owner without superuser rights watch and end the login's sessions.
  await pool.query(`GRANT ${login.name} TO CURRENT_USER`);
  return login;
}

async function removeRoles(pool: pg.Pool, names: readonly string[]): Promise<void> {
  for (const name of names) await pool.query(`DROP ROLE ${name}`);
}

async function withPool<T>(databaseUrl: string, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  // A lasting pool, because the server may stop before it has closed a connection that the pool has ended.
  const pool = openLastingPool({ connectionString: databaseUrl, max: 1 });
  return work(pool).finally(() => pool.end());
}
