import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { ExpressAdapter } from "@bull-board/express";
import type { RequestHandler } from "express";
import type { ApiContext } from "../../context.ts";
import type { QueueView } from "../../queues/queue-views.ts";
import { DASHBOARD_PATH } from "./dashboard-path.ts";

/**
 * Actions that stay refused on a writable board. Adding and editing send back data that the board has shown redacted, and
 * obliterating takes a queue's own limits away with its jobs.
 */
const NEVER = [
  "/api/queues/:queueName/add",
  "/api/queues/:queueName/:jobId/update-data",
  "/api/queues/:queueName/obliterate",
];

/**
 * Builds bull-board over the queues: without callers' words and secrets, without what it would tell of Redis, and read-only
 * unless the configuration says otherwise. Loading this module costs what bull-board costs.
 */
export function buildBoard(views: readonly QueueView[], config: ApiContext["config"]): RequestHandler {
  const readOnlyMode = !config.ops.writable;
  const serverAdapter = new ExpressAdapter().setBasePath(config.basePath + DASHBOARD_PATH);
  createBullBoard({
    queues: views.map(({ queue, shown }) => {
      const adapter = new BullMQAdapter(queue, { readOnlyMode });
      adapter.setFormatter("data", (data) => redact(data, shown.data));
      adapter.setFormatter("returnValue", (reply) => redact(reply, shown.reply));
      return adapter;
    }),
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: "Voucher queues",
        miscLinks: [{ text: "Sign out", url: `${config.basePath}/ops/login` }],
        hideRedisDetails: true,
        hideDocsLink: true,
        // Would ask Redis for all its connections with every poll.
        showWorkers: false,
      },
      handlerHooks: { before: ({ route }) => ({ allow: !NEVER.includes(route), status: 403 }) },
    },
  });
  return serverAdapter.getRouter().disable("x-powered-by");
}

/**
 * Keeps the fields that may be shown. The others become objects, which no queue takes for the text that stood there: a job made
 * from what the board shows would be refused by its worker.
 */
function redact(value: unknown, shown: readonly string[]): unknown {
  if (value === null || value === undefined) return value;
  if (typeof value !== "object") return REDACTED;
  return Object.fromEntries(
    Object.entries(value).map(([field, content]) => [
      field,
      content === null || shown.includes(field) ? content : REDACTED,
    ]),
  );
}

const REDACTED = { redacted: true };
