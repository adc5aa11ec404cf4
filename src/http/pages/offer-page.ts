import type { RequestHandler, Response } from "express";
import type { AppError, ErrorCode } from "../../contract/errors.ts";
import { type Html, html } from "./html.ts";
import { CHECK_PATH, layOut, type Site } from "./layout.ts";

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

const HEADINGS: Record<number, string> = {
  400: "Invalid address",
  401: "Please sign in",
  403: "Not allowed",
  404: "Page not found",
  429: "Too many requests",
  503: "Temporarily unavailable",
};

const HEADING_OF: Partial<Record<ErrorCode, string>> = {
  entity_not_found: "Voucher not found",
  not_logged_yet: "Not in the log yet",
};

/** The page of an error, below `top`. Its message and request id are those that a JSON response has in `error` and `requestId`. */
export function renderErrorPage(
  site: Site,
  refusal: AppError,
  status: number,
  requestId: string,
  top: Html | null = null,
): Html {
  const isUnknownVoucher = refusal.code === "entity_not_found";
  const heading = HEADING_OF[refusal.code] ?? HEADINGS[status] ?? "Something went wrong";
  return layOut(site, {
    title: heading,
    main: html`${top}<p class="eyebrow">${status}</p>
<h1>${heading}</h1>
<p class="lead">${refusal.message}${refusal.code === "not_logged_yet" ? " This page looks again by itself." : null}</p>
${isUnknownVoucher ? html`<p><a href="${site.basePath}${CHECK_PATH}">Check another voucher</a></p>` : null}
<p class="fine">If you report this, include the request id: <code>${requestId}</code></p>
<p><a href="${site.basePath}/">Go to the start page</a></p>`,
  });
}
