import { type Html, html } from "./html.ts";
import { layOut, type Site } from "./layout.ts";

/** The path, after the base path, of the page whose form opens a voucher's history. */
export const CHECK_PATH = "/check";

/** Longest text that the form accepts: a verify link with a long base address. */
export const CHECK_INPUT_MAX = 500;

/** The form "Check a voucher". `problem` says why the text `entered` is not accepted. */
export function renderCheckForm(site: Site, entered = "", problem: string | null = null): Html {
  return html`<form class="check" action="${site.basePath}${CHECK_PATH}" method="get">
<label for="voucher">Verify link or voucher id</label>
${problem === null ? null : html`<p class="problem" id="voucher-problem" role="alert">${problem}</p>`}
<div class="row"><input id="voucher" name="voucher" type="text" value="${entered}" required maxlength="${CHECK_INPUT_MAX}" autocomplete="off"
 autocapitalize="off" spellcheck="false" placeholder="vch_…"${problem === null ? null : html` aria-invalid="true" aria-describedby="voucher-problem"`}>
<button type="submit">Check</button></div>
</form>`;
}

/** The page that contains only the form. */
export function renderCheckPage(site: Site, entered: string, problem: string | null): Html {
  return layOut(site, {
    title: "Check a voucher",
    main: html`<h1>Check a voucher</h1>
<p class="lead">See what happened to a voucher, and whether its history is intact. Receipts usually have the link or the id.</p>
${renderCheckForm(site, entered, problem)}`,
  });
}

/**
 * Reads the voucher's id from a verify link or an id that a person has entered. Returns null for anything else. Checks only the format: the
 * history's page says whether the voucher exists.
 */
export function readVoucherId(entered: string): string | null {
  const text = entered.trim();
  const id = /\/VoucherInstance\/([^/?#\s]+)/i.exec(text)?.[1] ?? text;
  return /^vch_[a-z0-9]+$/i.test(id) ? id.toLowerCase() : null;
}
