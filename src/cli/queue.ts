import { dropShards, MEANING, type Shards, stateOf } from "../acts/queue/drop-shards.ts";
import { readDeploymentId } from "../platform/db/deployment.ts";
import type { Division } from "../platform/queues/read-shards.ts";
import { SHARDS_MAX } from "../platform/queues/shards.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { type CommandContext, type Noun, verb } from "./command.ts";
import { formatTable, pluralize } from "./format.ts";
import { integer } from "./options.ts";
import { withRedis } from "./with-redis.ts";

export const queue: Noun = {
  name: "queue",
  description: "the shards of the queues in Redis",
  verbs: {
    shards: verb({
      description: "show which numbers of shards API processes and workers use",
      help: `Shows the progress of a change of QUEUE_SHARDS: whether workers serve the
new shards, where API processes add jobs, and how many the old ones have left.`,
      examples: ["", "--json"],
      async run(ctx) {
        const divisions = await withQueues(ctx, ({ read }) => read());
        const stated = divisions.map((division) => ({ ...division, state: stateOf(division) }));
        ctx.print({ divisions: stated }, () => describeDivisions(divisions));
      },
    }),
    "drop-shards": verb({
      description: "delete the Redis keys of a number of shards that no process uses",
      argument: ["<count>", "the number of shards, such as 4", integer(1, SHARDS_MAX)],
      help: "Refuses a number of shards that a process uses, or that has jobs.",
      examples: ["4"],
      async run(ctx, _options, argument) {
        const shards = Number(argument);
        const keys = await withQueues(ctx, (queues) => dropShards(ctx, queues, shards));
        ctx.print({ shards, keys }, () => `Deleted ${pluralize(keys, "key")}.`);
      },
    }),
  },
};

// Loads BullMQ on demand, because few commands need it.
async function openQueues({ pool, host: { queues } }: CommandContext, redis: RedisClient): Promise<Shards> {
  const { readDivisions } = await import("../platform/queues/read-shards.ts");
  const { deleteJobs } = await import("../platform/queues/delete-jobs.ts");
  const deploymentId = await readDeploymentId(pool);
  return {
    deploymentId,
    read: () => readDivisions(redis, deploymentId, queues),
    drop: (shards: number) => deleteJobs(redis, deploymentId, queues, shards),
  };
}

async function withQueues<T>(ctx: CommandContext, work: (queues: Shards) => Promise<T>): Promise<T> {
  return withRedis(ctx, async (redis) => work(await openQueues(ctx, redis)));
}

function describeDivisions(divisions: readonly Division[]): string {
  const rows = divisions.map((division) => {
    const { shards, apis, jobs } = division;
    const left = jobs === null ? "?" : pluralize(jobs, "job");
    return { cells: [String(shards), String(apis), left, MEANING[stateOf(division)](division)] };
  });
  return formatTable(["Shards", "API processes", "Jobs", "State"], rows, "No process has used the queues yet.");
}
