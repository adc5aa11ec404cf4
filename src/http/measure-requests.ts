import type { RequestHandler } from "express";
import type { RequestMetrics } from "../metrics/request-metrics.ts";
import { finalStatus } from "./request-log.ts";

/** Counts every request when its answer is finished or its caller is gone. */
export function measureRequests(metrics: RequestMetrics): RequestHandler {
  return (request, response, next) => {
    const startedAt = performance.now();
    response.once("close", () => {
      const { route, errorCode } = response.locals;
      const durationMs = performance.now() - startedAt;
      metrics.countRequest({ route, method: request.method, status: finalStatus(response), errorCode, durationMs });
    });
    next();
  };
}
