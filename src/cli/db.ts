import { readRolePasswords } from "../config.ts";
import type { AppliedRole } from "../db/roles/apply-roles.ts";
import { adopt } from "../services/servers/adopt-database.ts";
import { applyRoleGrants } from "../services/servers/apply-roles.ts";
import { type ClusterRisk, findClusterRisks } from "../services/servers/find-cluster-risks.ts";
import { type DurabilityRisk, findDurabilityRisks } from "../services/servers/find-durability-risks.ts";
import { trustDatabaseClock } from "../services/servers/trust-clock.ts";
import { action, type CommandContext, type Noun } from "./command.ts";
import { confirmLoss, withYes } from "./confirm.ts";
import { EXIT } from "./exit-code.ts";
import { withRedis } from "./with-redis.ts";

export const db: Noun = {
  name: "db",
  description: "roles, identity and durability of the database",
  addVerbs(noun) {
    action(
      noun
        .command("roles")
        .description("create the roles pva_api, pva_log and pva_admin, or update their grants after a migration")
        .addHelpText(
          "after",
          "\nConnect as the owner of the database. The owner needs the CREATEROLE attribute.\n" +
            "Set PVA_API_PASSWORD, PVA_LOG_PASSWORD or PVA_ADMIN_PASSWORD (16 or more visible\n" +
            "ASCII characters) to let that role log in. Otherwise grant the role to a login\n" +
            "of your own.",
        ),
      ["db roles"],
      async (ctx) => {
        const { roles, takenFromPublic } = await applyRoleGrants(ctx, readRolePasswords(process.env));
        const revoked = takenFromPublic.map((grant) => `Revoked from PUBLIC: ${grant}.`);
        ctx.print({ roles, takenFromPublic }, () => [...roles.map(describeRole), ...revoked].join("\n"));
      },
    );
    action<{ yes?: true }>(
      withYes(noun.command("adopt"))
        .description("give a restored or copied database its own deployment id")
        .addHelpText(
          "after",
          "\nProcesses refuse a database that was copied or restored elsewhere, because the\n" +
            "jobs in Redis may belong to the original. Stop every process that uses the\n" +
            "original, run this command on the copy, and start the processes on the copy.",
        ),
      ["db adopt"],
      async (ctx, options) => {
        await confirmLoss(ctx, options, "Processes that use this database stop, and its jobs in Redis are refused.");
        const { id, before } = await adopt(ctx);
        ctx.print(
          { id, before },
          () =>
            `Adopted. The deployment's id is now ${id}; it was ${before}. Restart every process that uses this database.`,
        );
      },
    );
    action(
      noun
        .command("trust-clock")
        .description("say that the database's clock is right, after it jumped")
        .addHelpText(
          "after",
          "\nAfter a jump ahead, lists of redemptions stay behind the clock. If the clock was\n" +
            "wrong, set it right: the processes notice. Run this command if it is right now,\n" +
            "or if redemptions are dated later than the clock.",
        ),
      ["db trust-clock"],
      async (ctx) => {
        const { before, after } = await trustDatabaseClock(ctx);
        const wasAhead = before > after;
        ctx.print({ before: before.toISOString(), after: after.toISOString() }, () =>
          [
            `Redemptions are listed up to ${after.toISOString()}; before, it was ${before.toISOString()}.`,
            ...(wasAhead ? [`Partners must list again what follows ${after.toISOString()}.`] : []),
          ].join("\n"),
        );
      },
    );
    action(
      noun
        .command("check")
        .description("name each way in which acknowledged redemptions, jobs or leases could be lost")
        .addHelpText(
          "after",
          "\nReads the settings of Postgres, and of Redis if REDIS_URL is set. Run it with\n" +
            "the addresses and the QUEUE_SHARDS that the service uses. Exits with 1 if it\n" +
            "finds a risk.",
        ),
      ["db check"],
      async (ctx) => {
        const risks = await findRisks(ctx);
        ctx.print({ risks }, () => risks.map(({ message }) => message).join("\n") || "No risk found.");
        if (risks.length > 0) process.exitCode = EXIT.refused;
      },
    );
  },
};

async function findRisks({
  pool,
  redisUrl,
  queueShards,
  log,
}: CommandContext): Promise<(DurabilityRisk | ClusterRisk)[]> {
  const clusterRisks = redisUrl === null ? [] : await findClusterRisks(redisUrl, queueShards[0]);
  // With another risk, Redis may not answer.
  const isRedisUsable = clusterRisks.every(({ code }) => code === "redis_shards");
  const durabilityRisks =
    redisUrl !== null && isRedisUsable
      ? await withRedis({ redisUrl, log }, (redis) => findDurabilityRisks({ pool, redis }))
      : await findDurabilityRisks({ pool, redis: null });
  return [...durabilityRisks, ...clusterRisks];
}

function describeRole({ name, created, login, passwordSet }: AppliedRole): string {
  const access = passwordSet ? "logs in with the given password" : login ? "logs in as before" : "cannot log in";
  return `${name}: ${created ? "created" : "already existed"}, grants are up to date, ${access}.`;
}
