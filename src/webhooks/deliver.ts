import type { KeyObject } from "node:crypto";
import pLimit, { type LimitFunction } from "p-limit";
import type pg from "pg";
import type { Logger } from "pino";
import type { z } from "zod";
import { type Confirming, readConfirmed } from "../core/commit/confirm-reads.ts";
import type { OfWings } from "../core/metrics/metrics.ts";
import { markSandbox, pickFields } from "../platform/api/fields.ts";
import type { FairSlots } from "../platform/batching/fair-slots.ts";
import { sendWebhook, type WebhookResult, type WebhookSender } from "../platform/outgoing/send-webhook.ts";
import { openSigningKeys, webhookHeaders } from "../platform/outgoing/webhook-signature.ts";
import { type WebhookBody, webhookEvent } from "./api/webhooks.ts";
import {
  type DueDelivery,
  findTarget,
  readIsErased,
  selectDueDeliveries,
  type WebhookTarget,
} from "./db/webhook-deliveries.ts";
import { WEBHOOK_METRICS } from "./declared.ts";
import type { WebhookReport, WebhookRequests } from "./job.ts";
import type { AttemptRecorder } from "./record-attempts.ts";
import { ERASED, isGone } from "./webhook-delivery.ts";

/** Maximum number of concurrent requests to one target. */
const REQUESTS_PER_TARGET = 4;
/** Maximum number of concurrent requests of one process. */
export const REQUESTS_MAX = 64;
/**
 * Maximum number of failing targets that one process tries at once. Half of its requests stay free for other targets.
 */
export const FAILING_MAX = 32;
/** Maximum number of deliveries that one job's run reads at once and keeps in memory. */
const UNFINISHED_MAX = 64;
/** A run with {@link UNFINISHED_MAX} unfinished deliveries reads more only when at most this many are left. */
const UNFINISHED_LOW = 16;
/** A run ends after this many consecutive failures. The sweeper then requests the next run. */
const RUN_FAILURES_MAX = 4;
/** A run begins no request when it is this old, so that other targets get their turn. Milliseconds. */
const RUN_MAX_MS = 10_000;
/** How often a run looks for new deliveries while it waits for responses and may send more requests. Milliseconds. */
const POLL_INTERVAL_MS = 250;
/**
 * Maximum age of data that a run sends without reading it again. The target may have been disabled or the event erased
 * meanwhile. Milliseconds.
 */
export const READ_AGE_MAX_MS = 250;

interface DeliveryContext extends Confirming {
  pool: pg.Pool;
  /** The database connections of webhooks. */
  webhookReads: Pick<FairSlots, "run">;
  webhookRequests: WebhookRequests;
  attempts: AttemptRecorder;
  /** The root secret, from which the targets' secrets are derived. */
  secret: string;
  webhookSender: WebhookSender;
  /** Limits the process's concurrent requests. Organizations share the limit fairly. */
  requests: FairSlots;
  /** Limits the failing targets that this process tries at once. Organizations share the limit fairly. */
  failing: FairSlots;
  metrics: OfWings<"worker"> | null;
  log: Logger;
}

/**
 * Sends the due deliveries of a target. A target whose last attempt failed gets one request at a time until a request
 * succeeds. Postgres makes a voucher's next delivery due only when the previous delivery has ended.
 */
export async function deliverToTarget(ctx: DeliveryContext, endpointId: string): Promise<WebhookReport> {
  // Targets take turns for this read, because their organizations are not known yet. Organizations take turns for later
  // reads.
  const target = await ctx.webhookReads.run(endpointId, () => findTarget(ctx.pool, endpointId));
  const nothingSent = { delivered: 0, retried: 0, failed: 0 };
  if (target === null) return nothingSent;
  if (!target.isFailing) return new Run(ctx, target).deliver();
  if (!ctx.failing.hasRoom(target.organizationId)) return nothingSent;
  return ctx.failing.run(target.organizationId, () => new Run(ctx, target).deliver());
}

class Run {
  readonly #ctx: DeliveryContext;
  readonly #metrics: ReturnType<typeof WEBHOOK_METRICS.of<"worker">> | null;
  #target: WebhookTarget;
  #keys: readonly KeyObject[];
  /** The time of the target's read, on the monotonic clock. Milliseconds. */
  #targetReadAt: number;
  /** Limits the concurrent requests to the target. */
  readonly #requests: LimitFunction;
  readonly #report = { delivered: 0, retried: 0, failed: 0 };
  readonly #startedAt = performance.now();
  /** Events whose attempts are not recorded yet. */
  readonly #unfinished = new Set<string>();
  #onFinished = () => {};
  /** The number of consecutive failures. */
  #failures = 0;
  #error: unknown;

  constructor(ctx: DeliveryContext, target: WebhookTarget) {
    this.#ctx = ctx;
    this.#metrics = ctx.metrics && WEBHOOK_METRICS.of(ctx.metrics);
    this.#target = target;
    this.#keys = openSigningKeys(ctx.secret, target);
    this.#targetReadAt = this.#startedAt;
    this.#requests = pLimit(target.isFailing ? 1 : REQUESTS_PER_TARGET);
  }

  async deliver(): Promise<WebhookReport> {
    let more = false;
    try {
      more = await this.#sendDue();
    } catch (error) {
      this.#error = error;
    }
    // Waits for running requests, because the next run could send them again.
    await this.#waitUntilUnfinished(0, Number.POSITIVE_INFINITY);
    if (this.#error !== undefined) throw this.#error;
    // Requests the next run. After too many failures, the sweeper requests it later, so that other targets get their
    // turn.
    if (more && this.#failures < RUN_FAILURES_MAX && !this.#ctx.webhookSender.closing.aborted) {
      await this.#ctx.webhookRequests.add([this.#target.id]);
    }
    return this.#report;
  }

  /** Reads and sends deliveries while the run may continue. Returns whether more may be due. */
  async #sendDue(): Promise<boolean> {
    let more = true;
    while (more && this.#mayContinue()) {
      const { size } = this.#unfinished;
      const readAt = performance.now();
      const due = await this.#read();
      for (const delivery of due) this.#begin(delivery, readAt);
      // An attempt recorded during the read can make another delivery due. This read misses it, so another follows.
      more = due.length > 0 || size > 0;
      await this.#waitUntilUnfinished(
        due.length + size < UNFINISHED_MAX ? 0 : UNFINISHED_LOW,
        readAt + POLL_INTERVAL_MS,
      );
    }
    return more;
  }

  #mayContinue(): boolean {
    const { closing } = this.#ctx.webhookSender;
    const isLate = performance.now() - this.#startedAt > RUN_MAX_MS;
    return !closing.aborted && !isLate && this.#failures < RUN_FAILURES_MAX && this.#error === undefined;
  }

  /**
   * Reads the next deliveries. A sent request cannot be undone, so this read waits until a failover can no longer undo
   * the events of the deliveries. First reads the target again if its data is too old.
   */
  #read(): Promise<DueDelivery[]> {
    const { pool } = this.#ctx;
    const read = async () => {
      if (!(await this.#refreshTarget())) return [];
      const room = UNFINISHED_MAX - this.#unfinished.size;
      return selectDueDeliveries(pool, { endpointId: this.#target.id, except: [...this.#unfinished], limit: room });
    };
    return readConfirmed(
      this.#ctx,
      () => this.#inTurn(read),
      (due) => due.length > 0,
    );
  }

  /** Organizations take turns to read, so that one with many targets does not delay the others. */
  #inTurn<T>(read: () => Promise<T>): Promise<T> {
    return this.#ctx.webhookReads.run(this.#target.organizationId, read);
  }

  /** Reads the target again if its data is too old. Returns false if the target was disabled or deleted since. */
  async #refreshTarget(): Promise<boolean> {
    if (isRecent(this.#targetReadAt)) return true;
    const target = await findTarget(this.#ctx.pool, this.#target.id);
    if (target === null) return false;
    this.#target = target;
    this.#keys = openSigningKeys(this.#ctx.secret, target);
    this.#targetReadAt = performance.now();
    return true;
  }

  /**
   * Waits until at most `max` deliveries are unfinished. Returns earlier, at `untilMs`, if the target may get another
   * request.
   */
  #waitUntilUnfinished(max: number, untilMs: number): Promise<void> {
    return new Promise((resolve) => {
      let pollTimer: NodeJS.Timeout | undefined;
      this.#onFinished = () => {
        const { size } = this.#unfinished;
        if (size <= max) {
          clearTimeout(pollTimer);
          resolve();
        } else if (size < this.#requests.concurrency && untilMs < Number.POSITIVE_INFINITY) {
          pollTimer ??= setTimeout(resolve, Math.max(0, untilMs - performance.now()));
        }
      };
      this.#onFinished();
    });
  }

  #begin(delivery: DueDelivery, readAt: number): void {
    const { eventId } = delivery;
    this.#unfinished.add(eventId);
    this.#attempt(delivery, readAt)
      .catch((error) => {
        this.#error = error;
      })
      .finally(() => {
        this.#unfinished.delete(eventId);
        this.#onFinished();
      });
  }

  async #attempt(delivery: DueDelivery, readAt: number): Promise<void> {
    const result = isErased(delivery)
      ? ERASED
      : await this.#requests(() =>
          this.#ctx.requests.run(this.#target.organizationId, () => this.#refreshAndSend(delivery, readAt)),
        );
    if (result === null) return;
    const delayMs = delivery.ageMs + performance.now() - readAt;
    const state = await this.#ctx.attempts.submit({ endpointId: this.#target.id, delivery, result });
    if (result === ERASED) return;
    const outcome = ({ Pending: "retried", Delivered: "delivered", Failed: "failed", Erased: "failed" } as const)[
      state
    ];
    this.#report[outcome] += 1;
    this.#metrics?.webhookDeliveries.with(outcome).inc();
    if (state === "Delivered" && !delivery.isReplay) this.#metrics?.webhookDelay.with().observe(delayMs / 1_000);
  }

  /** Returns null if the run ended before the request began, or if the process closed before the request ended. */
  async #refreshAndSend(delivery: DueDelivery, readAt: number): Promise<WebhookResult | typeof ERASED | null> {
    if (!this.#mayContinue()) return null;
    if (!isRecent(readAt)) {
      if (!(await this.#inTurn(() => this.#refreshTarget()))) return null;
      const { voucherId, sequence } = delivery;
      const { pool } = this.#ctx;
      if (sequence !== null && (await this.#inTurn(() => readIsErased(pool, { voucherId, sequence })))) return ERASED;
    }
    return this.#send(delivery);
  }

  async #send(delivery: DueDelivery): Promise<WebhookResult | null> {
    const { url, now, sandbox } = this.#target;
    const body = webhookBody(delivery, sandbox);
    const sentAtMs = now.getTime() + (performance.now() - this.#targetReadAt);
    const headers = webhookHeaders({
      id: delivery.eventId,
      timestampSeconds: Math.floor(sentAtMs / 1_000),
      body,
      keys: this.#keys,
    });
    const result = await sendWebhook(this.#ctx, { url, headers, body });
    if (result === null) return null;
    this.#failures = result.failure === null ? 0 : this.#failures + 1;
    if (result.failure === null) this.#requests.concurrency = REQUESTS_PER_TARGET;
    // A request that times out takes one of the process's {@link REQUESTS_MAX} for long. So the run of a failing target
    // ends after the first timeout.
    else if (isGone(result) || (result.failure === "timeout" && this.#requests.concurrency === 1))
      this.#failures = RUN_FAILURES_MAX;
    if (result.failure === "refused_address") this.#metrics?.webhookRefusedAddresses.with().inc();
    return result;
  }
}

/** Whether data read at this time may still be sent. The time is on the monotonic clock, in milliseconds. */
function isRecent(readAt: number): boolean {
  return performance.now() - readAt <= READ_AGE_MAX_MS;
}

/** Whether the event of a delivery was erased: it is sealed and has no payload. */
function isErased({ recordHash, payload }: DueDelivery): boolean {
  return recordHash !== null && payload === null;
}

/** The body of a delivery's request. Every attempt sends the same bytes. */
function webhookBody(delivery: DueDelivery, sandbox: boolean): string {
  const event = webhookEventOf(delivery);
  return JSON.stringify({ ...event, data: { ...event.data, ...markSandbox(sandbox) } });
}

/** The schema of each event type's data. A newer process may have written an event of another type. */
const SCHEMAS = new Map<string, z.ZodObject>(webhookEvent.options.map(({ shape }) => [shape.type.value, shape.data]));

function webhookEventOf(delivery: DueDelivery): WebhookBody {
  const { eventType, voucherId, sequence, recordHash, occurredAt, payload, startedAt, expiresAt } = delivery;
  if (eventType === "reservation.expired") {
    if (startedAt === null || expiresAt === null) throw new Error(`${delivery.eventId} has no reservation`);
    const [from, to] = [startedAt.toISOString(), expiresAt.toISOString()];
    return { type: eventType, timestamp: to, data: { voucherId, startedAt: from, expiresAt: to } };
  }
  if (sequence === null || recordHash === null || occurredAt === null || payload === null) {
    throw new Error(`${delivery.eventId} has no sealed event`);
  }
  const inChain = { voucherId, sequence, recordHash };
  const schema = SCHEMAS.get(eventType);
  const data = schema === undefined ? inChain : pickFields(schema, { ...JSON.parse(payload).data, ...inChain });
  return { type: eventType, timestamp: occurredAt.toISOString(), data } as WebhookBody;
}
