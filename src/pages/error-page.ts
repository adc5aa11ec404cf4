import type { RequestHandler } from "express";
import type { BrandFace } from "../core/catalog/db/brand-faces.ts";
import { AppError, type ErrorKind } from "../platform/api/errors.ts";
import type { Language } from "../platform/api/sentences.ts";
import { negotiate } from "../platform/http/negotiate.ts";
import { nameContact } from "./brand-files.ts";
import { type Html, html } from "./html.ts";
import { CHECK_PATH, layOut, type Site } from "./layout.ts";
import { type Locale, localeIn } from "./locale.ts";

/** Calls {@link negotiate} with this site's error page. */
export function offerPage(site: Site, usual: "json" | "html" = "json", forDevelopers = true): RequestHandler {
  return negotiate((...refusal) => renderErrorPage(site, ...refusal, { forDevelopers }), usual);
}

const HEADED = [400, 401, 403, 404, 429, 503] as const;

function headingOf({ code, heading }: ErrorKind, status: number, { t }: Locale): string {
  if (code === "entity_not_found") return t("error.unknownVoucher");
  if (heading !== undefined) return heading(t);
  const headed = HEADED.find((each) => each === status);
  return headed === undefined ? t("error.otherHeading") : t(`error.headings.${headed}`);
}

/**
 * An error that concerns a brand's product. Its page has the brand's logo and colour, and names the brand as the
 * contact.
 */
export class BrandedError extends AppError {
  readonly face: BrandFace;

  constructor(kind: ErrorKind, face: BrandFace) {
    super(kind);
    this.face = face;
  }
}

/** The page of an error, with `top` above it. */
export function renderErrorPage(
  site: Site,
  refusal: AppError,
  status: number,
  requestId: string,
  language: Language,
  { top = null, forDevelopers = top === null }: { top?: Html | null; forDevelopers?: boolean } = {},
): Html {
  const { title, main } = describeError(site, refusal, status, requestId, language);
  return layOut(site, {
    locale: localeIn(language),
    title,
    main: html`${top}${main}`,
    forDevelopers,
    ...(refusal instanceof BrandedError && { face: refusal.face }),
  });
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
  const locale = localeIn(language);
  const { t, markup } = locale;
  const title = headingOf(refusal.kind, status, locale);
  const ask = (brand: string) => html`<p>${markup("frame.ask", { brand: nameContact(site, brand) })}</p>`;
  const main = html`<h1>${title}</h1>
<p class="lead">${refusal.sentenceIn(language)}\
${refusal.kind.looksAgain ? ` ${t("error.looksAgain")}` : null}</p>
${refusal instanceof BrandedError ? ask(refusal.face.brand) : null}
${isUnknownVoucher ? html`<p><a href="${site.basePath}${CHECK_PATH}">${t("error.checkAnother")}</a></p>` : null}
<p><a href="${site.basePath}/">${t("error.start")}</a></p>
<details class="experts fine"><summary>${t("frame.experts")}</summary>
<p>${t("error.report", { status })} <code>${requestId}</code></p>
</details>`;
  return { title, main };
}
