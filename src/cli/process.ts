import { dismissProcess, type Reports } from "../acts/process/dismiss.ts";
import { readProcesses } from "../core/processes/read-processes.ts";
import { readDeploymentId } from "../platform/db/deployment.ts";
import { type CommandFace, verbOf } from "./act-verb.ts";
import { type CommandContext, type Noun, verb } from "./command.ts";
import { formatTable, formatUtc } from "./format.ts";
import { withRedis } from "./with-redis.ts";

const DISMISS: CommandFace<object, Reports> = {
  around: async (ctx, _options, perform) => ({ result: await withReports(ctx, perform) }),
};

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
    ...verbOf(dismissProcess, DISMISS),
  },
};

async function withReports<T>(ctx: CommandContext, work: (reports: Reports) => Promise<T>): Promise<T> {
  const deployment = { id: await readDeploymentId(ctx.pool) };
  return withRedis(ctx, (redis) => work({ redis, deployment }));
}
