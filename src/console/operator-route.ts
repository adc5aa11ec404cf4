import type { RequestHandler, Router } from "express";
import type { OperatorRole } from "../acts/operator-role.ts";
import { OPS_PATH } from "../pages/operator-frame.ts";
import { requireRole } from "./sign-in/signed-in.ts";

/** A page, form or file below `/ops`. Each has a role. */
export interface OperatorRoute {
  method: "get" | "post" | "all";
  /** The path after `/ops`. */
  path: string;
  role: OperatorRole;
  handlers: readonly RequestHandler[];
}

/** Mounts the routes in order, each for its role and higher roles, and names them for logs and metrics. */
export function mountOperatorRoutes(router: Router, routes: readonly OperatorRoute[]): void {
  for (const { method, path, role, handlers } of routes) {
    const nameRoute: RequestHandler = (_request, response, next) => {
      response.locals.route = path === "/" ? OPS_PATH : OPS_PATH + path;
      next();
    };
    router[method](path, nameRoute, requireRole(role), ...handlers);
  }
}
