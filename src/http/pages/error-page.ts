import type { AppError, ErrorCode } from "../../contract/errors.ts";
import { CHECK_PATH } from "./check-form.ts";
import { type Html, html } from "./html.ts";
import { layOut, type Site } from "./layout.ts";

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
