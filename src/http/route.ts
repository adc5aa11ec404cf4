import type { Request, RequestHandler, Response, Router } from "express";
import { AppError } from "../contract/errors.ts";
import { sendJson } from "./send-json.ts";

export type Method = "get" | "post";

/** One path and its handlers. */
export interface Route {
  path: string;
  methods: Partial<Record<Method, RequestHandler[]>>;
  /** Methods that a later route with a parameter handles at the same path: `GET /partner/vouchers/redeem` looks up a code. */
  leavesToLater?: readonly string[];
}

/** Mounts a route. Every method that it does not handle gets 405 with `Allow`. */
export function mount(router: Router, { path, methods, leavesToLater = [] }: Route): void {
  const route = router.route(path);
  route.all((_request, response, next) => {
    response.locals.route = path;
    next();
  });
  for (const [method, handlers] of Object.entries(methods)) route[method as Method](...handlers);
  const allow = Object.keys(methods).flatMap((method) => (method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()]));
  allow.push(...leavesToLater);
  route.all((request, response, next) => {
    if (leavesToLater.includes(request.method)) return next();
    response.setHeader("Allow", allow.join(", "));
    throw new AppError("method_not_allowed");
  });
}

/** Sends the handler's result as JSON with status 200. */
export function respondJson(handler: (request: Request, response: Response) => Promise<unknown>): RequestHandler {
  return async (request, response) => sendJson(response, 200, await handler(request, response));
}
