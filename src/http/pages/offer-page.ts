import type { Request, RequestHandler, Response } from "express";
import type { AppError } from "../../domain/errors.ts";
import { renderErrorPage } from "./error-page.ts";
import type { Html } from "./html.ts";
import type { Site } from "./layout.ts";

declare global {
  namespace Express {
    interface Locals {
      /** Set where the caller would rather have a page than JSON: makes the page of a refusal. */
      errorPage?: (refusal: AppError, status: number, requestId: string) => Html;
    }
  }
}

/** Whether the caller would rather have a page. Whoever does not care, as most programs do not, gets JSON. */
export function prefersPage(request: Request): boolean {
  return request.accepts(["json", "html"]) === "html";
}

/** Goes before the handlers of an address that answers with a page or with JSON: notes which of them, for refusals too. */
export function offerPage(site: Site): RequestHandler {
  return (request, response, next) => {
    response.vary("Accept");
    if (prefersPage(request)) response.locals.errorPage = (...refusal) => renderErrorPage(site, ...refusal);
    next();
  };
}

/** Goes before the handlers of an address that only ever answers with a page. */
export function alwaysPage(site: Site): RequestHandler {
  return (_request, response, next) => {
    response.locals.errorPage = (...refusal) => renderErrorPage(site, ...refusal);
    next();
  };
}

/** Whether this answer is to be a page. */
export function wantsPage(response: Response): boolean {
  return response.locals.errorPage !== undefined;
}

/** Answers with a page. Nobody may store it: a chain grows, and the rest is for one reader. */
export function sendPage(response: Response, status: number, page: Html): void {
  response.status(status).setHeader("Cache-Control", "no-store");
  response.type("html").send(page.markup);
}
