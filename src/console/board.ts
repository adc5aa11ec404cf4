import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import type { AppControllerRoute, QueueAdapterOptions, QueueJobJson } from "@bull-board/api/typings/app";
import { ExpressAdapter } from "@bull-board/express";
import type { RequestHandler } from "express";
import { ASSETS } from "../pages/assets.ts";
import type { Site } from "../pages/layout.ts";
import { assetPath } from "../pages/layout.ts";
import { opsPath } from "../pages/operator-frame.ts";
import type { QueueSettings } from "../platform/queues/queue-settings.ts";
import type { QueueView } from "../platform/queues/queue-views.ts";
import { CAUSE_HIDDEN } from "./roles.ts";

/** The only paths of bull-board's API that are served. None of them changes a queue. */
const JOB = "/api/queues/:queueName/:jobId";
const READS = ["/api/queues", JOB, `${JOB}/logs`, `${JOB}/flow`];

/** bull-board with only the paths of {@link READS}. Passes errors on instead of sending their text. */
class BoardServer extends ExpressAdapter {
  override setApiRoutes(routes: AppControllerRoute[]): ExpressAdapter {
    return super.setApiRoutes(routes.filter(({ method, route }) => method === "get" && READS.includes(String(route))));
  }

  override setErrorHandler(): this {
    return super.setErrorHandler((error) => {
      throw error;
    });
  }
}

type Job = NonNullable<Awaited<ReturnType<BullMQAdapter["getJob"]>>>;

/** A queue that shows the errors of failed jobs only to operators who may see credentials. */
class QueueOnBoard extends BullMQAdapter {
  readonly #seesCredentials: boolean;

  constructor(queue: QueueView["queue"], options: Partial<QueueAdapterOptions>, seesCredentials: boolean) {
    super(queue, options);
    this.#seesCredentials = seesCredentials;
  }

  override async getJob(id: string) {
    const job = await super.getJob(id);
    return job && this.#withoutCauses(job);
  }

  override async getJobs(...args: Parameters<BullMQAdapter["getJobs"]>) {
    const jobs = await super.getJobs(...args);
    // A job is undefined if it was removed after the list was read.
    return jobs.map((job) => job && this.#withoutCauses(job));
  }

  override async getJobLogs(id: string): Promise<string[]> {
    return this.#seesCredentials ? super.getJobLogs(id) : [];
  }

  /** Removes the errors from a job, which was read only for this response. */
  #withoutCauses(job: Job): Job {
    if (this.#seesCredentials) return job;
    const hidden = job.failedReason ? { failedReason: CAUSE_HIDDEN } : {};
    return Object.assign(job, hidden, { stacktrace: [], deferredFailure: undefined });
  }
}

/**
 * Builds bull-board for the queues. It shows no text from callers, no secrets and no details of Redis. Import this
 * module on demand, because it loads bull-board.
 * @param seesCredentials whether it also shows the errors of failed jobs, which may quote codes and tickets.
 */
export function buildBoard(views: readonly QueueView[], site: Site, seesCredentials: boolean): RequestHandler {
  const [icon, operations] = [assetPath(site, ASSETS.icon), opsPath(site)];
  const serverAdapter = new BoardServer().setBasePath(opsPath(site, "queues", "jobs"));
  createBullBoard({
    queues: views.map(({ queue, shard, settings: { shown, about } }) => {
      const options = {
        readOnlyMode: true,
        externalJobUrl: (job: QueueJobJson) => linkJob(job, about, operations),
        // Shards of a queue have the same name, so a prefix distinguishes them.
        ...(shard.count > 1 && { prefix: `${shard.name} ` }),
      };
      const adapter = new QueueOnBoard(queue, options, seesCredentials);
      adapter.setFormatter("data", (data) => redact(data, shown.data));
      adapter.setFormatter("returnValue", (reply) => (shown.reply === "all" ? reply : redact(reply, shown.reply)));
      return adapter;
    }),
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: "Jobs",
        boardLogo: { path: icon, width: 28, height: 28 },
        favIcon: { default: icon, alternative: icon },
        hideRedisDetails: true,
        hideDocsLink: true,
        // Without this setting, bull-board lists all Redis connections at every poll.
        showWorkers: false,
        miscLinks: [{ text: "Operations", url: operations }],
      },
    },
  });
  return serverAdapter.getRouter().disable("x-powered-by");
}

/** The link of a job: to the page of its voucher or endpoint, or to the runbook if it failed or has no such page. */
function linkJob({ failedReason, data }: QueueJobJson, about: QueueSettings["about"], operations: string) {
  const link = (displayText: string, path: string) => ({ displayText, href: `${operations}/${path}` });
  if (failedReason) return link("Runbook", "runbook#VouchersJobsFail");
  const id: unknown = Object(data)[about?.field ?? ""];
  if (about !== undefined && typeof id === "string")
    return link(about.label, `${about.collection}/${encodeURIComponent(id)}`);
  return link("Runbook", "runbook#VouchersSweepFails");
}

/** Replaces each hidden field by an object, so that a worker rejects a job made from redacted data. */
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
