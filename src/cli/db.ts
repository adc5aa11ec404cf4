import { applyAllGrants } from "../acts/change-database.ts";
import { findRightsRisks } from "../acts/roles/apply-roles.ts";
import { type Checked, problemsOf } from "../platform/checks.ts";
import { readGranteePasswords } from "../platform/config.ts";
import { inspectDatabase } from "../platform/db/session.ts";
import { checkRedis } from "../platform/redis/requirements.ts";
import { verbOf } from "./act-verb.ts";
import { type CommandContext, type Noun, verb } from "./command.ts";
import { EXIT, ServersUnavailable } from "./exit-code.ts";
import { formatTable } from "./format.ts";

export const db: Noun = {
  name: "db",
  description: "roles, identity and durability of the database",
  verbs: {
    ...verbOf(applyAllGrants, {
      around: async ({ host }, _options, perform) => ({
        result: await perform({ passwords: readGranteePasswords(process.env), grants: host.grants }),
      }),
    }),
    check: verb({
      description: "list what the service needs of the servers, and what could lose redemptions, jobs or leases",
      help: `Reads the settings of Postgres, and of Redis if REDIS_URL is set, and compares
the rights of every role with what the service grants. Run it with the addresses
and the QUEUE_SHARDS that the service uses. Exits with 1 if it finds a risk.`,
      async run(ctx) {
        const postgres = await inspectDatabase(ctx.databaseUrl);
        const redis = await checkGivenRedis(ctx);
        const unmet = problemsOf(postgres);
        // Does not read the rights of roles from a database that the service refuses.
        const rights = unmet.some(({ effect }) => effect === "refused")
          ? []
          : await findRightsRisks(ctx.pool, ctx.host.grants);
        const risks = [...unmet, ...rights, ...problemsOf(redis)].map(({ code, message }) => ({ code, message }));
        const tables = [formatChecks("Postgres", postgres), formatChecks("Redis", redis)];
        const found = risks.map(({ message }) => message).join("\n") || "No risk found.";
        ctx.print({ requirements: postgres.map(toJson), redis: redis.map(toJson), risks }, () =>
          [...tables, found].filter(Boolean).join("\n\n"),
        );
        if (risks.length > 0) process.exitCode = EXIT.refused;
      },
    }),
  },
};

function formatChecks(server: string, rows: readonly Checked[]): string {
  const lines = rows.map(({ what, actual, wanted, why }) => ({ cells: [what, actual, wanted, why] }));
  return formatTable([server, "Is", "Needed", "Why"], lines);
}

function toJson({ what, why, wanted, actual, problems }: Checked) {
  return { name: what, why, wanted, actual, mend: problems.map(({ message }) => message).join(" ") || null };
}

/**
 * The code's requirements for Redis, with what Redis provides. Empty without REDIS_URL.
 * @throws ServersUnavailable when Redis does not answer.
 */
async function checkGivenRedis({ redisUrl, queueShards }: CommandContext): Promise<Checked[]> {
  if (redisUrl === null) return [];
  const { answered, rows } = await checkRedis(redisUrl, queueShards[0]);
  if (answered) return rows;
  const reasons = problemsOf(rows).map(({ message }) => message);
  throw new ServersUnavailable(`Redis does not answer. Check REDIS_URL. ${reasons.join(" ")}`);
}
