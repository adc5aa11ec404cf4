import type { RequestHandler } from "express";
import type { ApiMetrics } from "../../metrics/metrics.ts";
import { finalStatus } from "./request-log.ts";

/** The label of requests that match no route. Their paths are not labels, because callers can send any path. */
const NO_ROUTE = "none";
/** Methods that have their own label. All others share one, because callers can send any method. */
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
