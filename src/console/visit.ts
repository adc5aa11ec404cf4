import type { Request } from "express";
import type pg from "pg";
import { insertVisit, type VisitEntry } from "../acts/db/audit-entries.ts";
import { isAllowed, type OperatorRole } from "../acts/operator-role.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { type OperatedSite, siteOfRequest } from "../pages/operator-frame.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Config } from "../platform/config.ts";
import { pathId } from "../platform/http/endpoint.ts";
import { wholeNumber } from "../platform/http/whole-number.ts";
import { CREDENTIALS_ROLE, type Roles } from "./roles.ts";
import { actingOf, operatorOf, type SignedIn } from "./sign-in/signed-in.ts";

/** The dependencies of every page. */
export interface PageDeps {
  pool: pg.Pool;
  config: Site & { sections?: readonly string[] } & Pick<Config, "ops">;
  roles: Roles;
}

/** An operator's request for a page. */
export interface Visit<Deps = object> {
  ctx: PageDeps & Deps;
  site: OperatedSite;
  operator: SignedIn;
  /** Whether the operator may see credentials: see CREDENTIALS_ROLE. */
  seesCredentials: boolean;
  /** Marks up a credential. Null for an operator who may not see it. */
  credential(text: string | null): Html | null;
  /** The id in the page's path. */
  id: string;
  /** A parameter of the query. Empty if it is missing or repeated, or contains NUL. */
  query(name: string): string;
  /**
   * A query parameter that is a whole number. Null if it is missing.
   * @throws AppError `invalid_request` if it is not such a number, or if it is repeated.
   */
  number(name: string, min: number, max: number): number | null;
  /** A field of the submitted form. Empty in the same cases as in `query`. */
  entered(name: string): string;
  /**
   * Records the visit before the page is sent, with the operator's name and how the operator was identified. `args`
   * must contain no secret and no voucher code.
   */
  recordVisit(
    command: VisitEntry["command"],
    entity: VisitEntry["entity"],
    args?: VisitEntry["arguments"],
  ): Promise<void>;
}

/** Returns the page, or the URL to which to redirect. Pages with data of partners or customers record each view. */
export type Page<Deps = object> = (visit: Visit<Deps>) => Promise<Html | string>;

/** Pages by their paths after `/ops`, each with its required role. */
export type Pages<Deps = object> = Readonly<Record<string, readonly [role: OperatorRole, page: Page<Deps>]>>;

/** The dependencies of a table of pages: everything that its pages need together. */
export type DepsOfPages<Pages> = (
  Pages[keyof Pages] extends infer Each
    ? Each extends readonly [OperatorRole, Page<infer Deps>]
      ? (deps: Deps) => void
      : never
    : never
) extends (deps: infer All) => void
  ? All
  : never;

export function visitOf<Deps extends PageDeps>(ctx: Deps, request: Request): Visit<Deps> {
  const operator = operatorOf(request);
  const seesCredentials = isAllowed(operator.role, CREDENTIALS_ROLE);
  return {
    ctx,
    site: siteOfRequest(siteOf(ctx, operator), request),
    operator,
    seesCredentials,
    credential: (text) => (seesCredentials && text !== null ? html`<code>${text}</code>` : null),
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
    recordVisit: (command, entity, args = {}) => {
      const { user, by } = actingOf(request);
      return insertVisit(ctx.pool, {
        osUser: user,
        host: request.ip ?? "unknown",
        by,
        command,
        entity,
        arguments: args,
      });
    },
  };
}

/** The site with the links that this operator may use. */
function siteOf({ config, roles }: PageDeps, { role }: SignedIn): OperatedSite {
  return { ...config, offers: (path) => config.ops.writable && isAllowed(role, roles(path)) };
}

/** A submitted text. Empty if it is missing or repeated, or contains NUL. */
export function textOf(value: unknown): string {
  return typeof value === "string" && !value.includes("\0") ? value : "";
}
