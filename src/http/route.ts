import type { Request, RequestHandler, Response, Router } from "express";
import { AppError } from "../domain/errors.ts";
import { sendJson } from "./send-json.ts";

export type Method = "get" | "post";

/** One path and what it answers to. */
export interface Route {
  path: string;
  methods: Partial<Record<Method, RequestHandler[]>>;
  /** Methods that a later route with a parameter answers at this very path: `GET /partner/vouchers/redeem` looks up a code. */
  leavesToLater?: readonly string[];
}

/** Mounts a route: its methods in order, and 405 with `Allow` for every other method. */
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
    throw new AppError("method_not_allowed", `This address answers to ${allow.join(", ")} only.`);
  });
}

/** A handler whose result is the JSON answer, with status 200. */
export function answer(work: (request: Request, response: Response) => Promise<unknown>): RequestHandler {
  return async (request, response) => sendJson(response, 200, await work(request, response));
}
