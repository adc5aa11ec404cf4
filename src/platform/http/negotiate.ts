import type { RequestHandler, Response } from "express";
import type { AppError } from "../api/errors.ts";
import type { Language } from "../api/sentences.ts";

/** An HTML page whose values are escaped. */
interface Page {
  readonly markup: string;
}

type RenderError = (refusal: AppError, status: number, requestId: string, language: Language) => Page;

declare global {
  namespace Express {
    interface Locals {
      /** Renders the page of an error. Set if the caller prefers a page to JSON. */
      errorPage?: RenderError;
    }
  }
}

/**
 * Decides whether later handlers, and the handler of their errors, send a page or JSON. A caller without a preference
 * gets what `usual` names.
 */
export function negotiate(renderError: RenderError, usual: "json" | "html"): RequestHandler {
  const kinds = usual === "json" ? ["json", "html"] : ["html", "json"];
  return (request, response, next) => {
    response.vary("Accept");
    if ((request.accepts(kinds) || usual) === "html") response.locals.errorPage = renderError;
    next();
  };
}

/** Whether this response must be a page. */
export function wantsPage(response: Response): boolean {
  return response.locals.errorPage !== undefined;
}

/**
 * Sends a page and forbids caching, because a chain page changes when events are added, and an error page is for one
 * request only.
 */
export function sendPage(response: Response, status: number, page: Page): void {
  response.status(status).setHeader("Cache-Control", "no-store");
  response.type("html").send(page.markup);
}
