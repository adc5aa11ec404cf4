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

function headingOf({ kind: { code, heading }, isEnglishOnly }: AppError, status: number, { t }: Locale): string {
  if (heading !== undefined) return heading(t);
  // An English-only message already names what was not found, so the heading does not.
  if (code === "not_found" && isEnglishOnly) return t("portal.nothingFound");
  const headed = HEADED.find((each) => each === status);
  return headed === undefined ? t("error.otherHeading") : t(`error.headings.${headed}`);
}

/** An error that concerns a brand's product. Its page shows the brand, and names the brand as the contact. */
export class BrandedError extends AppError {
  readonly face: BrandFace;

  constructor(kind: ErrorKind, face: BrandFace) {
    super(kind);
    this.face = face;
  }
}

/** Renders the page of an error. The markup `top` stands above the error. */
export function renderErrorPage(
  site: Site,
  refusal: AppError,
  status: number,
  requestId: string,
  language: Language,
  { top = null, forDevelopers = top === null }: { top?: Html | null; forDevelopers?: boolean } = {},
): Html {
  const { title, main } = describeError(site, refusal, status, requestId, language, {
    forDevelopers,
    // The page of a brand's error names the storefront beside the brand, so the error does not name it again.
    storefrontUrl: top === null && !(refusal instanceof BrandedError) ? site.storefrontUrl : null,
  });
  return layOut(site, {
    locale: localeIn(language),
    title,
    main: html`${top}${main}`,
    forDevelopers,
    ...(refusal instanceof BrandedError && { face: refusal.face }),
  });
}

/**
 * The content of an error page. Only developers get a prominent link to the start page, which is of no use to others.
 * Customers get a link to the storefront, if there is one. The message and the request id are the same as `error` and
 * `requestId` in the JSON response.
 */
export function describeError(
  site: Site,
  refusal: AppError,
  status: number,
  requestId: string,
  language: Language,
  { forDevelopers = false, storefrontUrl = null }: { forDevelopers?: boolean; storefrontUrl?: string | null } = {},
): { title: string; main: Html } {
  const isUnknownVoucher = refusal.code === "entity_not_found";
  const locale = localeIn(language);
  const { t, markup } = locale;
  const title = headingOf(refusal, status, locale);
  const start = html`<p><a href="${site.basePath}/">${t("error.start")}</a></p>`;
  const ask = (brand: string) => html`<p>${markup("frame.ask", { brand: nameContact(site, brand) })}</p>`;
  const main = html`<h1>${title}</h1>
<p class="lead">${refusal.sentenceIn(language)}\
${refusal.kind.looksAgain ? ` ${t("error.looksAgain")}` : null}</p>
${refusal instanceof BrandedError ? ask(refusal.face.brand) : null}
${isUnknownVoucher ? html`<p><a href="${site.basePath}${CHECK_PATH}">${t("error.checkAnother")}</a></p>` : null}
${forDevelopers ? start : storefrontUrl && linkStorefront(storefrontUrl, locale)}
<details class="experts fine"><summary>${t("frame.experts")}</summary>
<p>${t("error.report", { status })} <code>${requestId}</code></p>${forDevelopers ? null : start}
</details>`;
  return { title, main };
}

function linkStorefront(storefrontUrl: string, { t }: Locale): Html {
  const { origin, host } = new URL(storefrontUrl);
  return html`<p><a href="${origin}/">${t("marketplace.link.goOn", { host })}</a></p>`;
}
