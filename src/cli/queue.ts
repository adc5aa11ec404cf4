import { withAuditEntry } from "../acts/with-audit-entry.ts";
import { AppError } from "../platform/api/errors.ts";
import { readDeploymentId } from "../platform/db/database-fence.ts";
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
        const keys = await withQueues(ctx, async ({ read, drop, deploymentId }) => {
          const division = (await read()).find((each) => each.shards === shards);
          if (division === undefined) return 0;
          const state = stateOf(division);
          if (state !== "unused") {
            throw new AppError("invalid_request", `${pluralize(shards, "shard")}: ${MEANING[state](division)}.`);
          }
          // The drop changes nothing in the database. 1 means that there are keys: the audit entry is written only if
          // the two facts differ.
          const after = (dropped: number) => ({ queueKeys: dropped === 0 ? 1 : 0 });
          const unseen = { before: { queueKeys: 1 }, after };
          return withAuditEntry(ctx, { type: "Deployment", id: deploymentId }, () => drop(shards), unseen);
        });
        ctx.print({ shards, keys }, () => `Deleted ${pluralize(keys, "key")}.`);
      },
    }),
  },
};

// Loads BullMQ on demand, because few commands need it.
async function openQueues({ pool }: CommandContext, redis: RedisClient) {
  const { readDivisions } = await import("../platform/queues/read-shards.ts");
  const { dropShards } = await import("../platform/queues/drop-shards.ts");
  const deploymentId = await readDeploymentId(pool);
  return {
    deploymentId,
    read: () => readDivisions(redis, deploymentId),
    drop: (shards: number) => dropShards(redis, deploymentId, shards),
  };
}

async function withQueues<T>(
  ctx: CommandContext,
  work: (queues: Awaited<ReturnType<typeof openQueues>>) => Promise<T>,
): Promise<T> {
  return withRedis(ctx, async (redis) => work(await openQueues(ctx, redis)));
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
  ready: () => "workers serve every shard, no API process adds jobs, and no jobs are left",
  emptying: () => "no API process adds jobs; workers process those that are left",
  unserved: ({ unserved }) => `no worker serves ${unserved.join(", ")}`,
  unreachable: () => "a Redis server does not answer",
  unused: ({ shards }) => `no process uses it; voucherctl queue drop-shards ${shards} deletes what is left`,
};

function describeDivisions(divisions: readonly Division[]): string {
  const rows = divisions.map((division) => {
    const { shards, apis, jobs } = division;
    const left = jobs === null ? "?" : pluralize(jobs, "job");
    return { cells: [String(shards), String(apis), left, MEANING[stateOf(division)](division)] };
  });
  return formatTable(["Shards", "API processes", "Jobs", "State"], rows, "No process has used the queues yet.");
}
