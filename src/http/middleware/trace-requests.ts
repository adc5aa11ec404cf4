import type { RequestHandler } from "express";
import type { Traces } from "../../traces/traces.ts";
import { finalStatus } from "./request-log.ts";

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
