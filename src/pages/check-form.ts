import { ENTITY_TYPE } from "../core/voucher/voucher.ts";
import { invalidField } from "../platform/api/errors.ts";
import { getRoute, type Route } from "../platform/http/endpoint.ts";
import { sendPage, wantsPage } from "../platform/http/negotiate.ts";
import { offerPage } from "./error-page.ts";
import { type Html, html } from "./html.ts";
import { CHECK_PATH, layOut, type Site } from "./layout.ts";
import { ENGLISH, localeOf } from "./locale.ts";
import { pageHeaders } from "./page-headers.ts";

/** Longest text that the form accepts: a verify link with a long base address. */
const CHECK_INPUT_MAX = 500;

/** The form "Check a voucher". `problem` says why `entered` is refused. */
export function renderCheckForm(site: Site, entered = "", problem: string | null = null, locale = ENGLISH): Html {
  const { check } = locale.texts;
  return html`<form class="check" action="${site.basePath}${CHECK_PATH}" method="get">
<label for="voucher">${check.label}</label>
${problem === null ? null : html`<p class="problem" id="voucher-problem" role="alert">${problem}</p>`}
<div class="row"><input id="voucher" name="voucher" type="text" value="${entered}" required \
maxlength="${CHECK_INPUT_MAX}" autocomplete="off"
 autocapitalize="off" spellcheck="false" placeholder="vch_…"${
   problem === null
     ? null
     : html` aria-invalid="true" \
aria-describedby="voucher-problem"`
 }>
<button type="submit">${check.button}</button></div>
</form>`;
}

/**
 * The id in the text that a person has entered: an id, or a link with one. Null without an id. The history page says
 * whether the voucher exists.
 */
function readVoucherId(entered: string): string | null {
  const text = entered.trim();
  const id = /\/VoucherInstance\/([^/?#\s]+)/i.exec(text)?.[1] ?? text;
  return /^vch_[a-z0-9]+$/i.test(id) ? id.toLowerCase() : null;
}

/** The page "Check a voucher". Redirects to the voucher's history when the request contains an id or a verify link. */
export function checkVoucherRoute({ config }: { config: Site }): Route {
  return getRoute(CHECK_PATH, pageHeaders, offerPage(config), (request, response) => {
    const { voucher } = request.query;
    const entered = typeof voucher === "string" ? voucher.slice(0, CHECK_INPUT_MAX) : "";
    const id = readVoucherId(entered);
    if (id !== null) return response.redirect(303, `${config.basePath}/integrity/events/${ENTITY_TYPE}/${id}`);
    if (!wantsPage(response)) throw invalidField("voucher", "noVerifyLink");
    const isEmpty = entered.trim() === "";
    const locale = localeOf(response);
    const { title, lead, notAnId } = locale.texts.check;
    const page = layOut(config, {
      locale,
      title,
      main: html`<h1>${title}</h1>
<p class="lead">${lead}</p>
${renderCheckForm(config, entered, isEmpty ? null : notAnId, locale)}`,
    });
    sendPage(response, isEmpty ? 200 : 400, page);
  });
}
