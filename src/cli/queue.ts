import { readDeploymentId } from "../db/deployment.ts";
import type { Division } from "../queues/read-shards.ts";
import { action, type CommandContext, type Noun } from "./command.ts";
import { ServersUnavailable, UsageError } from "./exit-code.ts";
import { pluralize } from "./format.ts";
import { formatTable } from "./layout.ts";

export const queue: Noun = {
  name: "queue",
  description: "the shards of the queues in Redis",
  addVerbs(noun) {
    action(
      noun
        .command("shards")
        .description("show which numbers of shards API processes and workers use")
        .addHelpText(
          "after",
          "\nTells how far a change of QUEUE_SHARDS has come: whether workers serve the\n" +
            "new shards, which ones API processes add jobs to, and what is left in the old.",
        ),
      ["queue shards", "queue shards --json"],
      async (ctx) => {
        const divisions = await findDivisions(ctx);
        ctx.print({ divisions: divisions.map((division) => ({ ...division, state: stateOf(division) })) }, () =>
          describe(divisions),
        );
      },
    );
  },
};

// Imported on demand, because no other command needs Redis and BullMQ.
async function findDivisions({ pool, redisUrl, log }: CommandContext): Promise<Division[]> {
  if (redisUrl === null) throw new UsageError("REDIS_URL is not set.");
  const [{ openFailFast, untilReady }, { readDivisions }] = await Promise.all([
    import("../redis/connections.ts"),
    import("../queues/read-shards.ts"),
  ]);
  const redis = openFailFast(redisUrl, "voucherctl", log);
  try {
    await untilReady(redis).catch((cause) => {
      throw new ServersUnavailable("Redis does not answer. Check REDIS_URL.", { cause });
    });
    return await readDivisions(redis, await readDeploymentId(pool));
  } finally {
    redis.disconnect();
  }
}

type State = "unserved" | "in_use" | "ready" | "emptying" | "unreachable" | "unused";

function stateOf({ apis, jobs, served, unserved }: Division): State {
  if (apis > 0) return unserved.length > 0 ? "unserved" : "in_use";
  if (jobs === null) return "unreachable";
  if (jobs > 0) return served && unserved.length === 0 ? "emptying" : "unserved";
  if (!served) return "unused";
  return unserved.length > 0 ? "unserved" : "ready";
}

const MEANING: Record<State, (division: Division) => string> = {
  in_use: () => "API processes add jobs, and workers serve every shard",
  ready: () => "workers serve every shard, no API process adds jobs, and none is left",
  emptying: () => "no API process adds jobs; workers process those that are left",
  unserved: ({ unserved }) => `no worker serves ${unserved.join(", ")}`,
  unreachable: () => "a Redis server does not answer",
  unused: () => "no process uses it",
};

function describe(divisions: readonly Division[]): string {
  if (divisions.length === 0) return "No process has used the queues yet.";
  return formatTable(
    ["Shards", "API processes", "Jobs", "State"],
    divisions.map((division) => ({
      cells: [
        String(division.shards),
        String(division.apis),
        division.jobs === null ? "?" : pluralize(division.jobs, "job"),
        MEANING[stateOf(division)](division),
      ],
    })),
  );
}
