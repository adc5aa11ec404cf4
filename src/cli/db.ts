import { adopt, applyRoleGrants, trustDatabaseClock } from "../acts/change-database.ts";
import type { AppliedRole } from "../acts/roles/apply-roles.ts";
import { readRolePasswords } from "../platform/config.ts";
import { describeFinding, type Finding } from "../platform/db/requirements.ts";
import { inspectDatabase } from "../platform/db/session.ts";
import { checkRedis, problemsOf } from "../platform/redis/requirements.ts";
import { findDurabilityRisks } from "../platform/servers/find-risks.ts";
import { type CommandContext, confirmLoss, type Noun, verb } from "./command.ts";
import { EXIT, ServersUnavailable } from "./exit-code.ts";
import { formatTable } from "./format.ts";
import { YES } from "./options.ts";

export const db: Noun = {
  name: "db",
  description: "roles, identity and durability of the database",
  verbs: {
    roles: verb({
      description: "create the roles pva_api, pva_log and pva_admin, or update their grants after a migration",
      help: `Connect as the owner of the database. The owner needs the CREATEROLE attribute.
Set PVA_API_PASSWORD, PVA_LOG_PASSWORD or PVA_ADMIN_PASSWORD (16 or more visible
ASCII characters) to let that role log in. Otherwise grant the role to a login
of your own.`,
      async run(ctx) {
        const { roles, takenFromPublic } = await applyRoleGrants(ctx, readRolePasswords(process.env));
        const revoked = takenFromPublic.map((grant) => `Revoked from PUBLIC: ${grant}.`);
        ctx.print({ roles, takenFromPublic }, () => [...roles.map(describeRole), ...revoked].join("\n"));
      },
    }),
    adopt: verb({
      description: "give a restored or copied database its own deployment id",
      options: { yes: YES },
      help: `Processes refuse a database that was copied or restored elsewhere, because the
jobs in Redis may belong to the original. Stop every process that uses the
original, run this command on the copy, and start the processes on the copy.
It also ends their refusal of a server whose files were set back.`,
      async run(ctx, { yes }) {
        await confirmLoss(ctx, yes, "Processes that use this database stop, and its jobs in Redis are refused.");
        const { id, before } = await adopt(ctx);
        const adopted = `Adopted. The deployment's id is now ${id}; it was ${before}.`;
        ctx.print({ id, before }, () => `${adopted} Restart every process that uses this database.`);
      },
    }),
    "trust-clock": verb({
      description: "say that the database's clock is right, after it jumped",
      help: `After a jump ahead, lists of redemptions stay behind the clock. If the clock was
wrong, set it right: the processes notice. Run this command if it is right now,
or if redemptions are dated later than the clock.`,
      async run(ctx) {
        const { before, after } = await trustDatabaseClock(ctx);
        const [was, is] = [before.toISOString(), after.toISOString()];
        const again = before > after ? `\nPartners must list again what follows ${is}.` : "";
        ctx.print(
          { before: was, after: is },
          () => `Redemptions are listed up to ${is}; before, it was ${was}.${again}`,
        );
      },
    }),
    check: verb({
      description: "list what the service needs of the servers, and what could lose redemptions, jobs or leases",
      help: `Reads the settings of Postgres, and of Redis if REDIS_URL is set. Run it with
the addresses and the QUEUE_SHARDS that the service uses. Exits with 1 if it
finds a risk.`,
      async run(ctx) {
        const requirements = await inspectDatabase(ctx.databaseUrl);
        const unmet = requirements.filter(({ mend }) => mend !== null);
        const { rows: redis, problems } = await checkGivenRedis(ctx);
        const risks = [
          ...unmet.map((finding) => ({ code: "requirement", message: describeFinding(finding) })),
          // A session that lacks something is not used.
          ...(unmet.length === 0 ? await findDurabilityRisks(ctx.pool) : []),
          ...problems,
        ];
        const tables = [formatRequirements("Postgres", requirements), formatRequirements("Redis", redis)];
        const found = risks.map(({ message }) => message).join("\n") || "No risk found.";
        ctx.print({ requirements, redis, risks }, () => [...tables, found].filter(Boolean).join("\n\n"));
        if (risks.length > 0) process.exitCode = EXIT.refused;
      },
    }),
  },
};

/** A table of what a server must have; empty without rows. */
function formatRequirements(server: string, rows: readonly Omit<Finding, "mend">[]): string {
  const lines = rows.map(({ name, actual, wanted, why }) => ({ cells: [name, actual, wanted, why] }));
  return formatTable([server, "Is", "Needed", "Why"], lines);
}

/**
 * What the code relies on in Redis, and the problems found. Nothing without REDIS_URL.
 * @throws ServersUnavailable when Redis does not answer.
 */
async function checkGivenRedis({ redisUrl, queueShards }: CommandContext) {
  if (redisUrl === null) return { rows: [], problems: [] };
  const check = await checkRedis(redisUrl, queueShards[0]);
  const problems = problemsOf(check);
  if (!check.answered) {
    const reasons = problems.map(({ message }) => message).join(" ");
    throw new ServersUnavailable(`Redis does not answer. Check REDIS_URL. ${reasons}`);
  }
  const rows = check.rows.map(({ name, why, wanted, actual, problems: unmet }) => {
    return { name, why, wanted, actual, mend: unmet.map(({ message }) => message).join(" ") || null };
  });
  return { rows, problems: problems.map(({ code, message }) => ({ code, message })) };
}

function describeRole({ name, created, login, passwordSet }: AppliedRole): string {
  const access = passwordSet ? "logs in with the given password" : login ? "logs in as before" : "cannot log in";
  return `${name}: ${created ? "created" : "already existed"}, grants are up to date, ${access}.`;
}
