import type { Request, RequestHandler, Response, Router } from "express";
import { AppError } from "../contract/errors.ts";
import { TEXT } from "../contract/receipt.ts";

export type Method = "get" | "post" | "patch" | "delete";

/** One path and its handlers. */
export interface Route {
  path: string;
  methods: Partial<Record<Method, RequestHandler[]>>;
  /** Handlers that run before those of every method. They respond to CORS preflights and let pages of other origins read responses. */
  crossOrigin?: RequestHandler[];
}

/** Merges the routes of each path into one. Their methods must differ. Paths keep the order of their first routes. */
export function joinRoutes(routes: readonly Route[]): Route[] {
  return [...Map.groupBy(routes, ({ path }) => path).values()].map((samePath) => ({
    ...(samePath[0] as Route),
    methods: Object.assign({}, ...samePath.map(({ methods }) => methods)),
  }));
}

/** Mounts a route. Other methods get 405 with `Allow`. */
export function mount(router: Router, { path, methods, crossOrigin = [] }: Route): void {
  const route = router.route(path);
  route.all(
    (_request, response, next) => {
      response.locals.route = path;
      next();
    },
    ...crossOrigin,
  );
  for (const [method, handlers] of Object.entries(methods)) route[method as Method](...handlers);
  const allow = Object.keys(methods).flatMap((method) => (method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()]));
  route.all((_request, response) => {
    response.setHeader("Allow", allow.join(", "));
    throw new AppError("method_not_allowed");
  });
}

/** Sends the handler's result as text with status 200. The response must not be cached. */
export function respondText(handler: (request: Request, response: Response) => Promise<unknown>): RequestHandler {
  return async (request, response) => {
    const text = String(await handler(request, response));
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Content-Type", TEXT);
    response.end(request.method === "HEAD" ? undefined : text);
  };
}

/** Sends the handler's result as JSON with status 200. */
export function respondJson(handler: (request: Request, response: Response) => Promise<unknown>): RequestHandler {
  return async (request, response) => sendJson(response, 200, await handler(request, response));
}

/** Sends JSON that must not be cached, because it may contain codes. Unlike Express's `json`, writes head and body together. */
export function sendJson(response: Response, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.statusCode = status;
  response.setHeader("Cache-Control", "no-store");
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", Buffer.byteLength(text));
  response.end(response.req.method === "HEAD" ? undefined : text);
}
