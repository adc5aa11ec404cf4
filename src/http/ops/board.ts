import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { ExpressAdapter } from "@bull-board/express";
import type { RequestHandler } from "express";
import type { QueueView } from "../../queues/queue-views.ts";

/** Never allowed: adding and editing would send back redacted data, and obliterating deletes a queue's limits. */
const NEVER = [
  "/api/queues/:queueName/add",
  "/api/queues/:queueName/:jobId/update-data",
  "/api/queues/:queueName/obliterate",
];

/** Builds bull-board at `path`, without callers' data, secrets and details of Redis. Import it on demand: it is large. */
export function buildBoard(views: readonly QueueView[], path: string, readOnlyMode: boolean): RequestHandler {
  const serverAdapter = new ExpressAdapter().setBasePath(path);
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
        hideRedisDetails: true,
        hideDocsLink: true,
        // Showing them would list all Redis connections at every poll.
        showWorkers: false,
      },
      handlerHooks: { before: ({ route }) => ({ allow: !NEVER.includes(route), status: 403 }) },
    },
  });
  return serverAdapter.getRouter().disable("x-powered-by");
}

/** Replaces fields that may not be shown by objects, so that a worker rejects a job created from redacted data. */
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
