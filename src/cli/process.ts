import { dismissProcess } from "../acts/dismiss-process.ts";
import { readProcesses } from "../core/processes/read-processes.ts";
import { AppError } from "../platform/api/errors.ts";
import { readDeploymentId } from "../platform/db/database-fence.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { type CommandContext, type Noun, verb } from "./command.ts";
import { formatTable, formatUtc } from "./format.ts";
import { withRedis } from "./with-redis.ts";

export const processes: Noun = {
  name: "process",
  description: "the processes on the operators' overview",
  verbs: {
    list: verb({
      description: "list API processes and workers with their states: up, ended, gone",
      help: "One that is gone vanished, and no other of its kind has taken its place.",
      examples: ["", "--json"],
      async run(ctx) {
        const found = await withReports(ctx, ({ redis, deployment }) => readProcesses(redis, deployment));
        const shown = found.map(({ id, role, state, queues, version, since, at, problem }) => {
          return { id, role, state, queues, version, since, at, problem };
        });
        const rows = shown.map(({ id, role, state, queues, since, at }) => {
          const times = [since, at].map((time) => formatUtc(new Date(time)));
          return { cells: [role, state, ...times, queues.join(", "), id] };
        });
        const headings = ["Role", "State", "Since (UTC)", "Heard (UTC)", "Queues", "Id"];
        ctx.print({ processes: shown }, () => formatTable(headings, rows, "No process reports."));
      },
    }),
    dismiss: verb({
      description: "dismiss a process that is gone and will not be replaced",
      argument: ["<id>", "the id, in quotes, as process list prints it"],
      help: "The overview stops showing it, until it reports again.",
      examples: ['"host-7 4711 worker 2027-01-31T12:00:00.000Z"'],
      async run(ctx, _options, id = "") {
        const isDone = await withReports(ctx, (reports) => dismissProcess({ ...ctx, ...reports }, id));
        if (!isDone)
          throw new AppError("not_found", "No process that is gone has this id. See voucherctl process list.");
        ctx.print({ id, dismissed: true }, () => "Dismissed.");
      },
    }),
  },
};

async function withReports<T>(
  ctx: CommandContext,
  work: (reports: { redis: RedisClient; deployment: { id: string } }) => Promise<T>,
): Promise<T> {
  const deployment = { id: await readDeploymentId(ctx.pool) };
  return withRedis(ctx, (redis) => work({ redis, deployment }));
}
