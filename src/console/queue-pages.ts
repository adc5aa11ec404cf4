import type { Percentiles } from "../core/processes/latency-buckets.ts";
import { type Html, html } from "../pages/html.ts";
import {
  COUNT,
  describeMs,
  layOutForOperators,
  linkActions,
  linkTo,
  opsPath,
  renderFigures,
  renderSection,
  renderSteps,
  renderTable,
  sectionStep,
} from "../pages/operator-frame.ts";
import { MINUTES, renderTime } from "../pages/time.ts";
import { AppError } from "../platform/api/errors.ts";
import type { QueueViews } from "../platform/queues/queue-views.ts";
import { type FailedJob, type QueueState, type QueuesDeps, readFailedJobs, readQueues } from "../watch/read-queues.ts";
import { CAUSE_HIDDEN } from "./roles.ts";
import type { Page, Visit } from "./visit.ts";

/** Maximum number of workers shown for a queue: on the page of all queues, and on the queue's own page. */
const WORKERS_MAX = { ofAll: 8, ofOne: 100 };
/** Maximum number of failed jobs on a queue's page. */
const FAILED_MAX = 50;

/** All queues with their figures, workers and possible acts. @throws AppError `unavailable`. */
export const queuesPage: Page<QueuesDeps> = async (visit) => {
  const { ctx, site } = visit;
  const sections = (await readQueues(ctx)).map((queue) =>
    renderSection(
      queue.name,
      html`<a href="${opsPath(site, "queues", queue.name)}">${queue.name}</a>`,
      renderPause(queue),
      renderState(queue),
      renderWorkers(queue, WORKERS_MAX.ofAll),
      linkActs(visit, queue),
    ),
  );
  const about = html`<p class="lead">What each queue holds, and the processes that work on it. Times are of the last \
five minutes. <a href="${opsPath(site, "queues", "jobs")}">Single jobs</a>.</p>`;
  return layOutForOperators(site, "Queues", html`<h1>Queues</h1>\n${about}\n${sections}`);
};

/** One queue, with its failed jobs. @throws AppError `not_found`, `unavailable`. */
export const queuePage: Page<QueuesDeps & { queueViews: Pick<QueueViews, "open"> }> = async (visit) => {
  const { ctx, site, id } = visit;
  const queue = (await readQueues(ctx)).find(({ name }) => name === id);
  if (queue === undefined)
    throw new AppError("not_found", `The queues are ${ctx.config.queues.map(({ name }) => name).join(", ")}.`);
  const failed = await readFailedJobs(ctx, queue.name, FAILED_MAX);
  const steps = [sectionStep(site, "Queues"), { path: opsPath(site, "queues", queue.name), label: queue.name }];
  const main = html`${renderSteps(steps)}<h1>Queue ${queue.name}</h1>
${renderPause(queue)}${renderState(queue)}
${linkActs(visit, queue, ["promote", "Promote delayed jobs"])}
${renderSection("failed", "Failed jobs", linkFailedActs(visit, queue, failed), renderFailed(visit, queue.name, failed))}
${renderSection("workers", "Workers", renderWorkers(queue, WORKERS_MAX.ofOne))}`;
  return layOutForOperators(site, `Queue ${queue.name}`, main);
};

const countOf = (count: number | null) => (count === null ? "unknown" : COUNT.format(count));

/** A notice that a queue is paused, who paused it and why. Null if it is not paused. */
function renderPause({ paused, pausedShards, shards, newestPause }: QueueState): Html | null {
  if (!paused) return null;
  const part =
    pausedShards < shards ? `${pausedShards} of ${shards} shards are paused` : "Paused: no worker takes a job";
  return html`<div class="verdict bad"><strong>${part}</strong><p>${describePause(newestPause)}.</p></div>`;
}

function describePause(newest: QueueState["newestPause"]): Html {
  if (newest === "unknown") return html`Who has paused it is not known: Postgres does not answer`;
  if (newest === null || !newest.isPaused) return html`Not from these pages: the audit has no pause of it`;
  const why = newest.reason === null ? null : html`: <bdi>${newest.reason}</bdi>`;
  return html`By <bdi>${newest.by}</bdi> on ${renderTime(newest.since)}${why}`;
}

function renderState({ waiting, active, failed, oldestWaitingMs, jobsPerMinute, workers, times, shards }: QueueState) {
  return html`${renderFigures(
    ["Waiting", countOf(waiting)],
    ["Oldest waiting", oldestWaitingMs === null ? "unknown" : describeMs(oldestWaitingMs)],
    ["Jobs a minute", countOf(jobsPerMinute)],
    ["Workers", countOf(workers === null ? null : workers.length)],
    ["Failed", countOf(failed)],
  )}
<p class="fine">Wait for a worker: ${describeTimes(times?.waitedMs)}. Work: ${describeTimes(times?.workedMs)}. \
Active: ${countOf(active)}.${shards > 1 ? ` Shards: ${shards}.` : ""}</p>`;
}

function describeTimes(percentiles: Percentiles | undefined): string {
  if (percentiles === undefined) return "unknown";
  const { p50, p99 } = percentiles;
  return p50 === null || p99 === null ? "no jobs" : `p50 ${describeMs(p50)}, p99 ${describeMs(p99)}`;
}

function renderWorkers({ workers }: QueueState, max: number): Html {
  if (workers === null) return html`<p class="notice">Not known: Postgres does not answer.</p>`;
  const shown = workers.slice(0, max);
  const rest = workers.length - shown.length;
  return html`${renderTable(
    "Workers",
    ["Host", "Process", "Busy", "Since"],
    shown.map(({ host, pid, busy, since }) => [
      host,
      String(pid),
      `${Math.round(busy * 100)} %`,
      renderTime(since, MINUTES),
    ]),
    "No worker serves this queue.",
  )}${rest > 0 ? html`<p class="fine">${COUNT.format(rest)} more.</p>` : null}`;
}

function linkActs(
  { site }: Visit,
  { name, paused, pausedShards, shards }: QueueState,
  ...further: readonly (readonly [path: string, label: string])[]
): Html | null {
  const pause = pausedShards < shards ? [["pause", "Pause"] as const] : [];
  const resume = paused ? [["resume", "Resume"] as const] : [];
  return linkActions(site, ["queues", name], ...resume, ...pause, ...further);
}

function linkFailedActs({ site }: Visit, { name }: QueueState, failed: readonly FailedJob[] | null): Html | null {
  const acts = failed?.length === 0 ? [] : [["retry", "Retry all"] as const, ["clean", "Remove all"] as const];
  return linkActions(site, ["queues", name], ...acts);
}

function renderFailed({ site, seesCredentials }: Visit, name: string, failed: readonly FailedJob[] | null): Html {
  if (failed === null) return html`<p class="notice">Not known: a Redis server does not answer.</p>`;
  return renderTable(
    "Failed jobs",
    ["Failed", "Job", "Why", "Of"],
    failed.map(({ id, failedAt, reason, page }) => {
      const query = `?job=${encodeURIComponent(id)}`;
      const acts = [["retry", "Retry"] as const, ["clean", "Remove"] as const];
      return [
        renderTime(failedAt),
        html`<code>${id}\
</code>${linkActions(site, ["queues", name], ...acts.map(([verb, label]) => [verb + query, label] as const))}`,
        html`<bdi>${seesCredentials ? reason : CAUSE_HIDDEN}</bdi>`,
        page === null ? "" : linkTo(site, ...page),
      ];
    }),
    "No job has failed within the last day.",
  );
}
