import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";
import type { ReportedAs } from "../../platform/http/endpoint.ts";
import type { Traces } from "../../platform/traces/traces.ts";
import type { ApiMetrics } from "../metrics/metrics.ts";
import { digestOf, type TokenSecret } from "../reserve/reservation-token.ts";
import type { MinuteCounts } from "./minute-counts.ts";
import type { PartnerCalls } from "./partner-calls.ts";

/** The facts that middleware and handlers record for the log line of a request. */
interface RequestFacts {
  requestId: string;
  /** When the last byte of the request was read, on the monotonic clock. Milliseconds. */
  receivedAtMs: number;
  /** The route's pattern. The path itself is never logged, because it may contain a code or a ticket. */
  route?: string;
  reportedAs?: ReportedAs;
  keyId?: string;
  organizationId?: string;
  /** The subject of a user's token, null for an anonymous caller. Never logged, because a log cannot be erased. */
  userId?: string | null;
  traceId?: string;
  errorCode?: string;
  /** Why a token was refused. */
  reason?: string;
  /** The cause of a 5xx response, or of a response body that was cut off. */
  failure?: unknown;
  /** Whether a 5xx response is part of normal operation. */
  isExpected?: boolean;
}

declare global {
  namespace Express {
    interface Locals extends RequestFacts {}
  }
}

/** Ids that a caller may set in X-Request-Id. A request with any other id gets a new id. */
const ACCEPTED_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** The label of requests that match no route. Their paths are not labels, because callers can send any path. */
const NO_ROUTE = "none";
/** Methods that have their own label. All other methods share a label, because callers can send any method. */
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** A UUID, or 128 bits in hex as in trace ids. Such an id identifies only the request. */
const RANDOM_ID = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/**
 * The form in which a caller's request id is logged and stored: unchanged if it is random, otherwise a digest. An id
 * that the caller has chosen may contain a reference, which an erasure could not find in the log. Null for a text that
 * cannot be a request id.
 */
export function keptRequestId(secrets: readonly TokenSecret[], given: string): string | null {
  if (!ACCEPTED_ID.test(given)) return null;
  return `given:${RANDOM_ID.test(given) ? given : digestOf(secrets, given)}`;
}

interface ObservingDeps {
  log: Logger;
  counts: Pick<MinuteCounts, "observe">;
  calls: Pick<PartnerCalls, "note">;
  keys: { known(secret: string): { id: string; organizationId: string | null } | null };
  metrics: ApiMetrics | null;
  tokenSecrets: readonly TokenSecret[];
}

/** Gives every request an id and sends it as X-Request-Id. Measures and logs the request when it ends. */
export function observeRequests(
  { log, counts, calls, keys, metrics, tokenSecrets }: ObservingDeps,
  errorCodes: readonly string[],
): RequestHandler {
  // Reports every counter as 0 from the start, because Prometheus `rate()` misses the first increase of a new series.
  for (const code of errorCodes) metrics?.refusals.with(code).inc(0);
  return (request: Request, response: Response, next: NextFunction) => {
    const startedAt = request.arrivedAtMs ?? performance.now();
    response.locals.receivedAtMs = startedAt;
    const given = request.get("x-request-id") ?? "";
    const keptForm = keptRequestId(tokenSecrets, given);
    const answeredId = keptForm === null ? crypto.randomUUID() : given;
    const requestId = keptForm ?? answeredId;
    response.locals.requestId = answeredId;
    response.setHeader("X-Request-Id", answeredId);
    response.once("close", () => {
      const secret = request.get("x-api-key");
      if (secret !== undefined) attribute(keys, secret, response.locals);
      const { route, keyId, organizationId, errorCode, reason, failure, isExpected, traceId } = response.locals;
      const status = finalStatus(response);
      const endedAtMs = performance.now();
      const durationMs = endedAtMs - startedAt;
      counts.observe(response.locals, status, durationMs);
      const method = METHODS.includes(request.method) ? request.method : "other";
      metrics?.requestDuration.with(route ?? NO_ROUTE, method, String(status)).observe(durationMs / 1_000);
      const shownMs = Math.round(durationMs * 10) / 10;
      if (secret !== undefined || keyId !== undefined) {
        const called = { keyId: keyId ?? null, route: `${method} ${route ?? NO_ROUTE}` };
        const call = { ...called, status, errorCode: errorCode ?? null, durationMs: shownMs, requestId, endedAtMs };
        calls.note(organizationId ?? null, call);
      }
      if (errorCode !== undefined) metrics?.refusals.with(errorCode).inc();
      log[isExpected ? "info" : levelOf(status)](
        {
          requestId,
          method: request.method,
          route,
          status,
          errorCode,
          keyId,
          organizationId,
          traceId,
          reason,
          // Only a 500 is unexpected, so only a 500 is logged with a stack trace.
          ...(failure !== undefined && (status === 500 ? { err: failure } : { reason: String(failure) })),
          durationMs: shownMs,
        },
        "request",
      );
    });
    next();
  };
}

/** Attributes a call to its key if the key could not be looked up now but worked before. */
function attribute(keys: ObservingDeps["keys"], secret: string, locals: RequestFacts): void {
  const key = locals.keyId === undefined ? keys.known(secret) : null;
  if (key === null) return;
  locals.keyId = key.id;
  if (key.organizationId !== null) locals.organizationId = key.organizationId;
}

/** The status of a closed response: 499 if the caller disconnected first, 500 if the body could not be sent. */
function finalStatus(response: Response): number {
  if (response.writableFinished) return response.statusCode;
  return response.headersSent && response.locals.failure !== undefined ? 500 : 499;
}

function levelOf(status: number): "info" | "warn" | "error" {
  if (status < 500) return "info";
  return status === 500 ? "error" : "warn";
}

/** Runs each request in a span, if traces are on. The span ends when the response ends or the caller disconnects. */
export function traceRequests(traces: Traces): RequestHandler {
  return (request, response, next) => {
    traces.request(request, (traced) => {
      if (traced !== null) {
        response.locals.traceId = traced.traceId;
        response.once("close", () => {
          const { route, errorCode } = response.locals;
          traced.end({ route, errorCode, status: finalStatus(response) });
        });
      }
      next();
    });
  };
}
