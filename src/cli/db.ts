import { applyRoleGrants } from "../acts/change-database.ts";
import { findRightsRisks } from "../acts/roles/apply-roles.ts";
import { readRolePasswords } from "../platform/config.ts";
import { describeFinding, type Finding } from "../platform/db/requirements.ts";
import { inspectDatabase } from "../platform/db/session.ts";
import { checkRedis, problemsOf } from "../platform/redis/requirements.ts";
import { findDurabilityRisks } from "../platform/servers/find-risks.ts";
import { verbOf } from "./act-verb.ts";
import { type CommandContext, type Noun, verb } from "./command.ts";
import { EXIT, ServersUnavailable } from "./exit-code.ts";
import { formatTable } from "./format.ts";

export const db: Noun = {
  name: "db",
  description: "roles, identity and durability of the database",
  verbs: {
    ...verbOf(applyRoleGrants, {
      around: async (_ctx, _options, perform) => ({
        result: await perform({ passwords: readRolePasswords(process.env) }),
      }),
    }),
    check: verb({
      description: "list what the service needs of the servers, and what could lose redemptions, jobs or leases",
      help: `Reads the settings of Postgres, and of Redis if REDIS_URL is set, and compares
the rights of every role with what the service grants. Run it with the addresses
and the QUEUE_SHARDS that the service uses. Exits with 1 if it finds a risk.`,
      async run(ctx) {
        const requirements = await inspectDatabase(ctx.databaseUrl);
        const unmet = requirements.filter(({ mend }) => mend !== null);
        const { rows: redis, problems } = await checkGivenRedis(ctx);
        const risks = [
          ...unmet.map((finding) => ({ code: "requirement", message: describeFinding(finding) })),
          // A session that misses a requirement is not used, so it cannot be asked for risks.
          ...(unmet.length === 0
            ? [...(await findDurabilityRisks(ctx.pool)), ...(await findRightsRisks(ctx.pool))]
            : []),
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

/** A table of a server's requirements. Empty without rows. */
function formatRequirements(server: string, rows: readonly Omit<Finding, "mend">[]): string {
  const lines = rows.map(({ name, actual, wanted, why }) => ({ cells: [name, actual, wanted, why] }));
  return formatTable([server, "Is", "Needed", "Why"], lines);
}

/**
 * The requirements of the code for Redis, and the problems found. Empty without REDIS_URL.
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
