import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";

/** What middleware and handlers record for the log line of a request. */
interface RequestFacts {
  requestId: string;
  /** The route's pattern. The path itself is never logged: it may hold a code or a ticket. */
  route?: string;
  keyId?: string;
  organizationId?: string;
  /** The subject of a user's token; null for an anonymous caller. */
  userId?: string | null;
  traceId?: string;
  errorCode?: string;
  /** The cause of a 5xx response. */
  failure?: unknown;
  /** Whether a 5xx response is part of normal operation. */
  isExpected?: boolean;
}

declare global {
  namespace Express {
    interface Locals extends RequestFacts {}
  }
}

/** Ids that a caller may set in X-Request-Id. A request with another one gets a new id. */
const ACCEPTED_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Gives every request an id, sends it as X-Request-Id, and writes one log line when the response ends or the caller disconnects. */
export function requestLog(log: Logger): RequestHandler {
  return (request: Request, response: Response, next: NextFunction) => {
    const startedAt = performance.now();
    const given = request.get("x-request-id");
    const requestId = given !== undefined && ACCEPTED_ID.test(given) ? given : crypto.randomUUID();
    response.locals.requestId = requestId;
    response.setHeader("X-Request-Id", requestId);
    response.once("close", () => {
      const { route, keyId, organizationId, userId, errorCode, failure, isExpected, traceId } = response.locals;
      const status = finalStatus(response);
      log[isExpected ? "info" : levelOf(status)](
        {
          requestId,
          method: request.method,
          route,
          status,
          errorCode,
          keyId,
          organizationId,
          userId: userId ?? undefined,
          traceId,
          // Only a 500 is unexpected, so only a 500 is logged with a stack.
          ...(failure !== undefined && (status === 500 ? { err: failure } : { reason: String(failure) })),
          durationMs: Math.round((performance.now() - startedAt) * 10) / 10,
        },
        "request",
      );
    });
    next();
  };
}

/** The status of a closed response: 499 when the caller disconnected first. */
export function finalStatus(response: Response): number {
  return response.writableFinished ? response.statusCode : 499;
}

function levelOf(status: number): "info" | "warn" | "error" {
  if (status < 500) return "info";
  return status === 500 ? "error" : "warn";
}
