import { randomBytes } from "node:crypto";
import pg from "pg";
import { type AppliedRoles, applyRoles, ROLES, type RoleName } from "../../src/acts/roles/apply-roles.ts";
import { inTransaction } from "../../src/platform/db/transaction.ts";
import { pooledRandomBytes } from "../../src/platform/random.ts";

export interface Login {
  name: string;
  password: string;
}

/** Null when the server's role may not create roles. The tests then run as the owner. */
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
    const { roles } = await makeRoles(pool);
    const logins = {
      api: await makeLogin(pool, "pva_api"),
      log: await makeLogin(pool, "pva_log"),
      admin: await makeLogin(pool, "pva_admin"),
    };
    const created = roles.filter((role) => role.created).map((role) => role.name);
    return { logins, remove: (url) => withPool(url, (later) => removeRoles(later, logins, created)) };
  });
}

/**
 * Creates the roles like `voucherctl db roles`, without an audit entry. With a password, the roles of processes are
 * logins.
 */
export function makeRoles(owner: pg.Pool, password: string | null = null): Promise<AppliedRoles> {
  return inTransaction(owner, (tx) =>
    applyRoles(tx, pooledRandomBytes, { pva_api: password, pva_log: password, pva_admin: null }),
  );
}

async function mayCreateRoles(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ may: boolean }>(
    "SELECT rolsuper OR rolcreaterole AS may FROM pg_roles WHERE rolname = current_user",
  );
  return rows[0]?.may === true;
}

async function makeLogin(pool: pg.Pool, role: RoleName): Promise<Login> {
  const login = { name: `${role}_test_${process.pid}`, password: randomBytes(16).toString("hex") };
  await pool.query(`CREATE ROLE ${login.name} LOGIN PASSWORD '${login.password}' IN ROLE ${role}`);
  // Lets an owner without superuser rights watch and end the login's sessions.
  await pool.query(`GRANT ${login.name} TO CURRENT_USER`);
  return login;
}

async function removeRoles(pool: pg.Pool, logins: TestLogins, created: readonly RoleName[]): Promise<void> {
  for (const login of Object.values(logins) as (Login | null)[])
    if (login !== null) await pool.query(`DROP ROLE ${login.name}`);
  for (const role of ROLES.filter((name) => created.includes(name))) {
    // A parallel run may still need the role.
    await pool.query(`DROP ROLE ${role}`).catch((error: unknown) => {
      if (!(error instanceof pg.DatabaseError && error.code === "2BP01")) throw error;
    });
  }
}

async function withPool<T>(databaseUrl: string, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  return work(pool).finally(() => pool.end());
}
