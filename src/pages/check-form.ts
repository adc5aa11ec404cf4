import type { RequestHandler } from "express";
import { ENTITY_TYPE } from "../core/voucher/voucher.ts";
import { invalidField } from "../platform/api/errors.ts";
import type { Route } from "../platform/http/endpoint.ts";
import { readForm } from "../platform/http/middleware/form-body.ts";
import { type LimitingAddresses, limitAddress } from "../platform/http/middleware/rate-limit.ts";
import { sendPage, wantsPage } from "../platform/http/negotiate.ts";
import { offerPage } from "./error-page.ts";
import { type Html, html } from "./html.ts";
import { CHECK_PATH, layOut, type Site } from "./layout.ts";
import { ENGLISH, localeOf } from "./locale.ts";
import { pageHeaders } from "./page-headers.ts";

/** Maximum length of a text in the form: enough for a verify link with a long base address. */
const CHECK_INPUT_MAX = 500;

/** The form "Check a voucher". `problem` tells why the service refuses `entered`. */
export function renderCheckForm(site: Site, entered = "", problem: string | null = null, locale = ENGLISH): Html {
  const { t } = locale;
  return html`<form class="check" action="${site.basePath}${CHECK_PATH}" method="post">
<label for="voucher">${t("check.label")}</label>
${problem === null ? null : html`<p class="problem" id="voucher-problem" role="alert">${problem}</p>`}
<div class="row"><input id="voucher" name="voucher" type="text" value="${entered}" required \
maxlength="${CHECK_INPUT_MAX}" autocomplete="off"
 autocapitalize="off" spellcheck="false" placeholder="vch_…"${
   problem === null
     ? null
     : html` aria-invalid="true" \
aria-describedby="voucher-problem"`
 }>
<button type="submit">${t("check.button")}</button></div>
</form>`;
}

/** The id in the entered text: the text itself, or the id in a link. Null if there is no id. */
function readVoucherId(entered: string): string | null {
  const text = entered.trim();
  const id = /\/VoucherInstance\/([^/?#\s]+)/i.exec(text)?.[1] ?? text;
  return /^vch_[a-z0-9]+$/i.test(id) ? id.toLowerCase() : null;
}

/**
 * The page "Check a voucher". Redirects to the voucher's history when the form contains an id or a verify link. The
 * form is sent with POST, because people also enter codes, and proxies log and browsers remember URLs.
 */
export function checkVoucherRoute(deps: LimitingAddresses & { config: Site }): Route {
  const { config } = deps;
  const before = [pageHeaders, offerPage(config), limitAddress(deps)];
  const show: RequestHandler = (request, response) => {
    const { voucher } = Object(request.body) as Record<string, unknown>;
    const entered = typeof voucher === "string" ? voucher.slice(0, CHECK_INPUT_MAX) : "";
    const id = readVoucherId(entered);
    if (id !== null) return response.redirect(303, `${config.basePath}/integrity/events/${ENTITY_TYPE}/${id}`);
    if (!wantsPage(response)) throw invalidField("voucher", "noVerifyLink");
    const isEmpty = entered.trim() === "";
    const locale = localeOf(response);
    const title = locale.t("check.title");
    const page = layOut(config, {
      locale,
      forDevelopers: false,
      title,
      main: html`<h1>${title}</h1>
<p class="lead">${locale.t("check.lead")}</p>
${renderCheckForm(config, entered, isEmpty ? null : locale.t("check.notAnId"), locale)}`,
    });
    sendPage(response, isEmpty ? 200 : 400, page);
  };
  // The service reads a body only if the caller's address is within its limit.
  return {
    path: CHECK_PATH,
    methods: { get: [...before, show], post: [...before, readForm, show] },
    limitsCallers: true,
  };
}
