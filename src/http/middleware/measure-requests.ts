import type { RequestHandler } from "express";
import type { ApiMetrics } from "../../metrics/metrics.ts";
import { finalStatus } from "./request-log.ts";

/** The route of a request that no route answers: its path could be anything. */
const NO_ROUTE = "none";
/** Methods with a label of their own; callers can send any other. */
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Records every request when its response is finished or its caller has disconnected. */
export function measureRequests({ requestDuration, refusals }: ApiMetrics): RequestHandler {
  return (request, response, next) => {
    const startedAt = performance.now();
    response.once("close", () => {
      const { route = NO_ROUTE, errorCode } = response.locals;
      const method = METHODS.includes(request.method) ? request.method : "other";
      const durationMs = performance.now() - startedAt;
      requestDuration.with(route, method, String(finalStatus(response))).observe(durationMs / 1_000);
      if (errorCode !== undefined) refusals.with(errorCode).inc();
    });
    next();
  };
}
