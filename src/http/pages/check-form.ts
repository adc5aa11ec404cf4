import { type Html, html } from "./html.ts";
import { layOut, type Site } from "./layout.ts";

/** The path of the form that opens a voucher's history, after the base path. */
export const CHECK_PATH = "/check";

/** Longest text that the form accepts: a verify link with a long base address. */
export const CHECK_INPUT_MAX = 500;

/** The field "Check a voucher". `problem` says why the text that was entered is not one. */
export function renderCheckForm(site: Site, entered = "", problem: string | null = null): Html {
  return html`<form class="check" action="${site.basePath}${CHECK_PATH}" method="get">
<label for="voucher">Verify link or voucher id</label>
${problem === null ? null : html`<p class="problem" id="voucher-problem" role="alert">${problem}</p>`}
<div class="row"><input id="voucher" name="voucher" type="text" value="${entered}" required maxlength="${CHECK_INPUT_MAX}" autocomplete="off"
 autocapitalize="off" spellcheck="false" placeholder="vch_…"${problem === null ? null : html` aria-invalid="true" aria-describedby="voucher-problem"`}>
<button type="submit">Check</button></div>
</form>`;
}

/** The page of the field alone. */
export function renderCheckPage(site: Site, entered: string, problem: string | null): Html {
  return layOut(site, {
    title: "Check a voucher",
    main: html`<h1>Check a voucher</h1>
<p class="lead">See what happened to a voucher, and whether its history is intact. Receipts usually have the link or the id.</p>
${renderCheckForm(site, entered, problem)}`,
  });
}

/**
 * Finds the voucher's id in a verify link or an id, as pasted or typed. Returns null for anything else. Only its shape is checked: the
 * history's page says whether there is such a voucher.
 */
export function readVoucherId(entered: string): string | null {
  const text = entered.trim();
  const id = /\/VoucherInstance\/([^/?#\s]+)/i.exec(text)?.[1] ?? text;
  return /^vch_[a-z0-9]+$/i.test(id) ? id.toLowerCase() : null;
}
