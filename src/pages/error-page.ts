import type { RequestHandler } from "express";
import type { AppError, ErrorCode } from "../platform/api/errors.ts";
import { type Language, SENTENCES } from "../platform/api/sentences/languages.ts";
import { negotiate } from "../platform/http/negotiate.ts";
import { type Html, html } from "./html.ts";
import { CHECK_PATH, layOut, type Site } from "./layout.ts";
import { localeIn } from "./locale.ts";
import type { PageTexts } from "./texts/page-texts.ts";

/** Calls {@link negotiate} with this site's error page. */
export function offerPage(site: Site, usual: "json" | "html" = "json"): RequestHandler {
  return negotiate((...refusal) => renderErrorPage(site, ...refusal), usual);
}

function headingOf(code: ErrorCode, status: number, { error }: PageTexts): string {
  if (code === "entity_not_found") return error.unknownVoucher;
  if (code === "not_logged_yet") return error.notLogged;
  const headings: Record<number, string> = error.headings;
  return headings[status] ?? error.otherHeading;
}

/** The page of an error, with `top` above it. */
export function renderErrorPage(
  site: Site,
  refusal: AppError,
  status: number,
  requestId: string,
  language: Language,
  top: Html | null = null,
): Html {
  const { title, main } = describeError(site, refusal, status, requestId, language);
  return layOut(site, { locale: localeIn(language), title, main: html`${top}${main}` });
}

/**
 * The content of an error page. Its message and request id are the same as `error` and `requestId` in the JSON
 * response.
 */
export function describeError(
  site: Site,
  refusal: AppError,
  status: number,
  requestId: string,
  language: Language,
): { title: string; main: Html } {
  const isUnknownVoucher = refusal.code === "entity_not_found";
  const { texts } = localeIn(language);
  const { error } = texts;
  const title = headingOf(refusal.code, status, texts);
  const main = html`<p class="eyebrow">${status}</p>
<h1>${title}</h1>
<p class="lead">${refusal.sentenceIn(SENTENCES[language])}\
${refusal.code === "not_logged_yet" ? ` ${error.looksAgain}` : null}</p>
${isUnknownVoucher ? html`<p><a href="${site.basePath}${CHECK_PATH}">${error.checkAnother}</a></p>` : null}
<p class="fine">${error.report} <code>${requestId}</code></p>
<p><a href="${site.basePath}/">${error.start}</a></p>`;
  return { title, main };
}
