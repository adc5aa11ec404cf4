import { renderCheckForm } from "./check-form.ts";
import { type Html, html } from "./html.ts";
import { layOut, type Site } from "./layout.ts";

/** The page of the field "Check a voucher" alone, with what is wrong with the text that was entered, if anything. */
export function renderCheckPage(site: Site, entered: string, problem: string | null): Html {
  return layOut(site, {
    title: "Check a voucher",
    main: html`<h1>Check a voucher</h1>
<p class="lead">See what happened to a voucher, and whether its history is intact. Receipts usually have the link or the id.</p>
${renderCheckForm(site, entered, problem)}`,
  });
}
