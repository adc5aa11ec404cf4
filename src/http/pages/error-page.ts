import type { AppError } from "../../domain/errors.ts";
import { type Html, html } from "./html.ts";
import { layOut, type Site } from "./layout.ts";

const HEADINGS: Record<number, string> = {
  400: "That address is not quite right",
  403: "Not allowed",
  404: "Nothing here",
  429: "Too many requests",
  503: "Not available at the moment",
};

/** The page of a refusal: what JSON callers read in `error` and `requestId`. */
export function renderErrorPage(site: Site, refusal: AppError, status: number, requestId: string): Html {
  const heading = HEADINGS[status] ?? "Something went wrong";
  return layOut(site, {
    title: heading,
    main: html`<p class="eyebrow">${status}</p>
<h1>${heading}</h1>
<p class="lead">${refusal.message}</p>
<p class="fine">If you ask someone about this, tell them the request id: <code>${requestId}</code></p>
<p><a href="${site.basePath}/">To the start page</a></p>`,
  });
}
