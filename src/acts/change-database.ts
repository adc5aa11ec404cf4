import { findClosedUntil, trustClock } from "../core/redeem/db/redemptions.ts";
import { adoptDatabase, readDeploymentId } from "../platform/db/deployment.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { act } from "./act.ts";
import { optional, text } from "./fields.ts";
import { type AppliedGrantee, applyGrants, type Grantee } from "./roles/apply-roles.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** Gives a restored copy a new deployment id, so that the original's jobs, replies and leases do not apply to it. */
export const adopt = act({
  name: "db adopt",
  on: null,
  role: "admin",
  only: "command",
  title: "Give a restored or copied database its own deployment id",
  help: `Processes refuse a database that was copied or restored elsewhere, because the
jobs in Redis may belong to the original. Stop every process that uses the
original, run this command on the copy, and start the processes on the copy.
It also ends their refusal of a server whose files were set back.`,
  examples: [""],
  fields: {},
  confirm: { loss: () => "Processes that use this database stop, and its jobs in Redis are refused." },
  async run(ctx) {
    const before = await readDeploymentId(ctx.pool);
    const id = await withAuditEntry(ctx, { type: "Deployment", id: before }, adoptDatabase);
    return { id, before };
  },
  said: ({ id, before }) =>
    `Adopted. The deployment's id is now ${id}; it was ${before}. Restart every process that uses this database.`,
  next: () => "After a restore, erase again what was erased since the backup: voucherctl erasure replay FILE",
});

/**
 * If the time up to which lists of redemptions are complete is ahead of the clock, sets that time to two seconds ago.
 * New redemptions then get the current time again. Returns the time before and after the change.
 */
export const trustDatabaseClock = act({
  name: "db trust-clock",
  on: null,
  role: "admin",
  only: "command",
  title: "Say that the database's clock is right, after it jumped",
  help: `After a jump ahead, lists of redemptions stay behind the clock. If the clock was
wrong, set it right: the processes notice. Run this command if it is right now,
or if redemptions are dated later than the clock.`,
  examples: [""],
  fields: {},
  async run(ctx) {
    const id = await readDeploymentId(ctx.pool);
    const before = await findClosedUntil(ctx.pool);
    const trust = (tx: Transaction) => trustClock(tx).then(() => findClosedUntil(tx));
    const after = await withAuditEntry(ctx, { type: "Deployment", id }, trust, { before, after: (closed) => closed });
    return { before: before.closedUntil, after: after.closedUntil };
  },
  said({ before, after }) {
    const [was, is] = [before.toISOString(), after.toISOString()];
    const again = before > after ? `\nPartners must list again what follows ${is}.` : "";
    return `Redemptions are listed up to ${is}; before, it was ${was}.${again}`;
  },
});

/** The prefix of roles' names. It may contain the characters of an SQL name without quotes. Postgres reserves `pg_`. */
const name = text("Prefix of the roles' names", 50, {
  hint: "Small letters, digits and underscores. By default the one of the last run; at first pva.",
});
const typed = name.typed.refine(
  (value) => /^(?!pg(_|$))[a-z][a-z0-9_]*$/.test(value),
  "must be small letters, digits and underscores, and not begin with pg_",
);

/** The passwords of roles that can log in, and the SQL files with the rights for wings (optional parts). */
interface GranteeSettings {
  passwords: Record<Grantee, string | null>;
  grants: readonly URL[];
}

/** The database does not reveal passwords, so setting a password always counts as a change. */
export const applyAllGrants = act({
  name: "db roles",
  on: null,
  role: "admin",
  only: "command",
  title: "Create the roles of the database, or update their grants after a migration",
  help: `Connect as the owner of the database. The owner needs the CREATEROLE attribute.
The roles are pva_api, pva_log and pva_admin, or with --prefix P: P_api, P_log
and P_admin. Roles belong to the server, so each deployment on it needs its own.
Set PVA_API_PASSWORD, PVA_LOG_PASSWORD or PVA_ADMIN_PASSWORD (16 or more visible
ASCII characters) to let that role log in. Otherwise grant the role to a login
of your own.`,
  examples: ["", "--prefix staging"],
  fields: { prefix: optional({ ...name, typed, json: typed }) },
  async run(ctx: AuditContext & GranteeSettings, _id, { prefix }) {
    const { rows } = await ctx.pool.query<{ name: string }>("SELECT current_database() AS name");
    return withAuditEntry(
      ctx,
      { type: "DatabaseRoles", id: rows[0]?.name ?? "" },
      (tx) => applyGrants(tx, ctx.randomBytes, { prefix, passwords: ctx.passwords, grants: ctx.grants }),
      {
        before: { passwordsSet: [] },
        after: ({ roles }) => ({ passwordsSet: roles.filter((role) => role.passwordSet).map((role) => role.name) }),
      },
    );
  },
  said: ({ roles, takenFromPublic, others }) =>
    [
      ...roles.map(describeGrantee),
      ...takenFromPublic.map((grant) => `Revoked from PUBLIC: ${grant}.`),
      ...others.map((sentence) => `Not granted by this deployment: ${sentence}`),
    ].join("\n"),
});

function describeGrantee({ name, created, login, passwordSet }: AppliedGrantee): string {
  const access = passwordSet ? "logs in with the given password" : login ? "logs in as before" : "cannot log in";
  return `${name}: ${created ? "created" : "already existed"}, grants are up to date, ${access}.`;
}
