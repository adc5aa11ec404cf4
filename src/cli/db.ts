import { readRolePasswords } from "../config.ts";
import type { AppliedRole } from "../db/roles/apply-roles.ts";
import { adopt, applyRoleGrants, trustDatabaseClock } from "../services/servers/change-database.ts";
import { findClusterRisks, findDurabilityRisks, type Risk } from "../services/servers/find-risks.ts";
import { type CommandContext, confirmLoss, type Noun, verb } from "./command.ts";
import { EXIT } from "./exit-code.ts";
import { YES } from "./options.ts";
import { withRedis } from "./with-redis.ts";

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
original, run this command on the copy, and start the processes on the copy.`,
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
      description: "name each way in which acknowledged redemptions, jobs or leases could be lost",
      help: `Reads the settings of Postgres, and of Redis if REDIS_URL is set. Run it with
the addresses and the QUEUE_SHARDS that the service uses. Exits with 1 if it
finds a risk.`,
      async run(ctx) {
        const risks = await findRisks(ctx);
        ctx.print({ risks }, () => risks.map(({ message }) => message).join("\n") || "No risk found.");
        if (risks.length > 0) process.exitCode = EXIT.refused;
      },
    }),
  },
};

async function findRisks({ pool, redisUrl, queueShards, log }: CommandContext): Promise<Risk[]> {
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
