import type { Request } from "express";
import type pg from "pg";
import { insertVisit, type VisitEntry } from "../acts/db/audit-entries.ts";
import type { Html } from "../pages/html.ts";
import type { OperatedSite } from "../pages/operator-frame.ts";
import { AppError } from "../platform/api/errors.ts";
import { pathId } from "../platform/http/endpoint.ts";
import { wholeNumber } from "../platform/http/whole-number.ts";
import { nameOf } from "./authenticate-operator.ts";

/** The dependencies of every page. */
export interface PageDeps {
  pool: pg.Pool;
  config: OperatedSite;
}

/** An operator's request for a page. */
export interface Visit<Deps = object> {
  ctx: PageDeps & Deps;
  site: OperatedSite;
  /** The id in the page's path. */
  id: string;
  /** A parameter of the query. Empty if it is missing, is repeated or contains NUL. */
  query(name: string): string;
  /**
   * A parameter of the query that is a whole number; null if it is missing. @throws AppError `invalid_request` for
   * another one, or several.
   */
  number(name: string, min: number, max: number): number | null;
  /** A field of the form that was sent. Empty as in `query`. */
  entered(name: string): string;
  /**
   * Records the visit before the page is sent, under the name that the browser sends. The name is not verified, because
   * all operators share OPS_TOKEN. `args` must contain no secret and no voucher code.
   */
  recordVisit(
    command: VisitEntry["command"],
    entity: VisitEntry["entity"],
    args?: VisitEntry["arguments"],
  ): Promise<void>;
}

/**
 * Reads what a page shows and returns it, or the URL to redirect to. Pages with data of partners or customers record
 * each view.
 */
export type Page<Deps = object> = (visit: Visit<Deps>) => Promise<Html | string>;

/** The dependencies of a table of pages: those of all its pages together. */
export type DepsOfPages<Pages> = (
  Pages[keyof Pages] extends infer Each
    ? Each extends Page<infer Deps>
      ? (deps: Deps) => void
      : never
    : never
) extends (deps: infer All) => void
  ? All
  : never;

export function visitOf<Deps extends PageDeps>(ctx: Deps, request: Request): Visit<Deps> {
  return {
    ctx,
    site: ctx.config,
    id: pathId(request.params.id),
    query: (name) => textOf(request.query[name]),
    number: (name, min, max) => {
      const given = request.query[name];
      if (given === undefined || given === "") return null;
      const number = wholeNumber(given, min, max);
      if (number !== null) return number;
      throw new AppError("invalid_request", `${name} must be one whole number from ${min} to ${max}.`);
    },
    entered: (name) => textOf(Object(request.body)[name]),
    recordVisit: (command, entity, args = {}) =>
      insertVisit(ctx.pool, {
        osUser: nameOf(request.get("authorization")),
        host: request.ip ?? "unknown",
        command,
        entity,
        arguments: args,
      }),
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" && !value.includes("\0") ? value : "";
}
