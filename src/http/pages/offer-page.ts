import type { RequestHandler, Response } from "express";
import type { AppError } from "../../contract/errors.ts";
import { renderErrorPage } from "./error-page.ts";
import type { Html } from "./html.ts";
import type { Site } from "./layout.ts";

declare global {
  namespace Express {
    interface Locals {
      /** Renders the page of an error. Set when the caller prefers a page to JSON. */
      errorPage?: (refusal: AppError, status: number, requestId: string) => Html;
    }
  }
}

/** Decides between page and JSON for the handlers after it, and for their errors. A caller without a preference gets JSON. */
export function offerPage(site: Site): RequestHandler {
  return (request, response, next) => {
    response.vary("Accept");
    if (request.accepts(["json", "html"]) === "html") {
      response.locals.errorPage = (...refusal) => renderErrorPage(site, ...refusal);
    }
    next();
  };
}

/** Whether this response must be a page. */
export function wantsPage(response: Response): boolean {
  return response.locals.errorPage !== undefined;
}

/** Sends a page and forbids caching: a chain page changes as events are added, and an error page is for one request. */
export function sendPage(response: Response, status: number, page: Html): void {
  response.status(status).setHeader("Cache-Control", "no-store");
  response.type("html").send(page.markup);
}
