import { setTimeout as sleep } from "node:timers/promises";
import pLimit, { type LimitFunction } from "p-limit";
import type pg from "pg";
import type { Logger } from "pino";
import type { WebhookReport } from "../../contract/jobs.ts";
import { type DueDelivery, findTarget, selectDueDeliveries, type WebhookTarget } from "../../db/webhook-deliveries.ts";
import { deriveSigningSecrets, webhookHeaders } from "../../domain/webhook-signature.ts";
import type { WorkerMetrics } from "../../metrics/metrics.ts";
import type { WebhookRequests } from "../../queues/webhook-requests.ts";
import type { AttemptRecorder } from "./record-attempts.ts";
import { sendWebhook, type WebhookResult, type WebhookSender } from "./send-webhook.ts";
import { webhookBody } from "./webhook-body.ts";

/** Requests to one endpoint at the same time. */
const REQUESTS_PER_ENDPOINT = 4;
/** Requests of one process at the same time. */
export const REQUESTS_MAX = 64;
/** Failing endpoints that one process tries at the same time: half of its requests stay for the others. */
const FAILING_MAX = 32;
/** Most deliveries that a run reads at once, and has in memory. */
const PORTION_MAX = 64;
/** A run reads more when at most this many are unfinished. */
const PORTION_LOW = 16;
/** A run ends after this many failures without a success between them. The sweeper requests the next run. */
const FAILURES_MAX = 4;
/** A run begins no request after this time, so that other endpoints get their turn. Milliseconds. */
const RUN_MAX_MS = 10_000;
/** How often a run looks for new deliveries while it waits for an answer. Milliseconds. */
const LOOK_MS = 250;

export interface DeliveryContext {
  pool: pg.Pool;
  webhookReads: LimitFunction;
  webhookRequests: WebhookRequests;
  attempts: AttemptRecorder;
  /** The secret that the endpoints' secrets derive from. */
  secret: string;
  webhookSender: WebhookSender;
  /** Limits the process's requests. */
  requests: LimitFunction;
  /** Failing endpoints that are tried now. */
  failing: Set<string>;
  /** Aborts when the process stops: no request begins then. */
  stopping: AbortSignal;
  metrics: Pick<WorkerMetrics, "webhookDeliveries" | "webhookDelay" | "webhookRefusedAddresses"> | null;
  log: Logger;
}

/**
 * Sends what is due for an endpoint, in portions. An endpoint whose last attempt failed gets one request at a time until one succeeds.
 * A later event of a voucher becomes due only after the end of the earlier one, in Postgres.
 */
export async function deliverToEndpoint(ctx: DeliveryContext, endpointId: string): Promise<WebhookReport> {
  const target = await ctx.webhookReads(() => findTarget(ctx.pool, endpointId));
  const idle = { delivered: 0, retried: 0, failed: 0 };
  if (target === null) return idle;
  if (!target.isFailing) return new Run(ctx, target).deliver();
  if (ctx.failing.size >= FAILING_MAX) return idle;
  ctx.failing.add(endpointId);
  try {
    return await new Run(ctx, target).deliver();
  } finally {
    ctx.failing.delete(endpointId);
  }
}

/** One run over the due deliveries of an endpoint. */
class Run {
  readonly #ctx: DeliveryContext;
  #target: WebhookTarget;
  /** When the target was read. */
  #readAt: number;
  readonly #requests: LimitFunction;
  readonly #report = { delivered: 0, retried: 0, failed: 0 };
  readonly #startedAt = performance.now();
  readonly #unfinished = new Map<string, Promise<void>>();
  #failures = 0;
  #error: unknown;

  constructor(ctx: DeliveryContext, target: WebhookTarget) {
    this.#ctx = ctx;
    this.#target = target;
    this.#readAt = this.#startedAt;
    this.#requests = pLimit(target.isFailing ? 1 : REQUESTS_PER_ENDPOINT);
  }

  async deliver(): Promise<WebhookReport> {
    let more = true;
    while (more && this.#goesOn()) {
      const due = await this.#read();
      for (const delivery of due) this.#begin(delivery, this.#readAt);
      more = this.#unfinished.size > 0;
      if (more) await this.#waitForSome(due.length > 0 ? PORTION_LOW : 0);
    }
    await Promise.all(this.#unfinished.values());
    if (this.#error !== undefined) throw this.#error;
    // Failing endpoints wait for the sweeper, so that they do not take the turns of others.
    if (more && this.#failures < FAILURES_MAX && !this.#ctx.stopping.aborted) {
      await this.#ctx.webhookRequests.add([this.#target.id]);
    }
    return this.#report;
  }

  #goesOn(): boolean {
    const { stopping } = this.#ctx;
    const isLate = performance.now() - this.#startedAt > RUN_MAX_MS;
    return !stopping.aborted && !isLate && this.#failures < FAILURES_MAX && this.#error === undefined;
  }

  /** Reads the endpoint again, which may have changed, and its next deliveries. */
  #read(): Promise<DueDelivery[]> {
    const { pool, webhookReads } = this.#ctx;
    return webhookReads(async () => {
      const target = await findTarget(pool, this.#target.id);
      if (target === null) return [];
      this.#target = target;
      this.#readAt = performance.now();
      const room = PORTION_MAX - this.#unfinished.size;
      return selectDueDeliveries(pool, target.id, [...this.#unfinished.keys()], room);
    });
  }

  /** Waits until at most `left` are unfinished, but only briefly: a slow one must not delay new ones. */
  async #waitForSome(left: number): Promise<void> {
    const looked = sleep(LOOK_MS, "time" as const, { ref: false });
    while (this.#unfinished.size > left) {
      if ((await Promise.race([looked, ...this.#unfinished.values()])) === "time") return;
    }
  }

  #begin(delivery: DueDelivery, readAt: number): void {
    const { eventId } = delivery;
    const done = this.#attempt(delivery, readAt)
      .catch((error) => {
        this.#error = error;
      })
      .finally(() => this.#unfinished.delete(eventId));
    this.#unfinished.set(eventId, done);
  }

  async #attempt(delivery: DueDelivery, readAt: number): Promise<void> {
    const result = await this.#requests(() => this.#ctx.requests(() => this.#send(delivery)));
    if (result === null) return;
    const answeredMs = delivery.ageMs + performance.now() - readAt;
    const state = await this.#ctx.attempts.submit({ endpointId: this.#target.id, delivery, result });
    const outcome = ({ Pending: "retried", Delivered: "delivered", Failed: "failed" } as const)[state];
    this.#report[outcome] += 1;
    this.#ctx.metrics?.webhookDeliveries.with(outcome).inc();
    if (state === "Delivered" && !delivery.isReplay) this.#ctx.metrics?.webhookDelay.with().observe(answeredMs / 1_000);
  }

  /** Returns null if the run ended before the request began. */
  async #send(delivery: DueDelivery): Promise<WebhookResult | null> {
    if (!this.#goesOn()) return null;
    const { url, now } = this.#target;
    const body = webhookBody(delivery);
    const sentAtMs = now.getTime() + (performance.now() - this.#readAt);
    const headers = webhookHeaders({
      id: delivery.eventId,
      timestampSeconds: Math.floor(sentAtMs / 1_000),
      body,
      secrets: deriveSigningSecrets(this.#ctx.secret, this.#target),
    });
    const result = await sendWebhook(this.#ctx, { url, headers, body });
    this.#failures = result.failure === null ? 0 : this.#failures + 1;
    if (result.failure === null) this.#requests.concurrency = REQUESTS_PER_ENDPOINT;
    // A timeout occupies one of the process's requests for long, so a failing endpoint gets only one a run.
    else if (result.failure === "timeout" && this.#requests.concurrency === 1) this.#failures = FAILURES_MAX;
    if (result.failure === "refused_address") this.#ctx.metrics?.webhookRefusedAddresses.with().inc();
    return result;
  }
}
