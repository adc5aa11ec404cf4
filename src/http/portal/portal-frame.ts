import type { RedemptionSum } from "../../db/redemptions.ts";
import type { Caller } from "../../services/auth/caller.ts";
import { COUNT, USD } from "../ops/operator-frame.ts";
import { type Html, html } from "../pages/html.ts";
import { layOut, SANDBOX_NOTICE, type Site } from "../pages/layout.ts";

/** The path of the portal, after the base path. */
export const PORTAL_PATH = "/portal";

/** Longest text that the search accepts, longer than every reference and code. */
export const SEARCH_MAX = 500;

/** A caller of the portal: a key that can read and not redeem. */
export interface PortalCaller extends Caller {
  readsWebhooks: boolean;
}

/** The path of a page of the portal. The segments are encoded. */
export function portalPath(site: Site, ...segments: string[]): string {
  return [site.basePath + PORTAL_PATH, ...segments.map(encodeURIComponent)].join("/");
}

/** The first part of every page: navigation, whether this is a sandbox, and the search with the text `entered`. */
export function renderTop(site: Site, { sandbox, readsWebhooks }: PortalCaller, entered = ""): Html {
  return html`<nav class="ops" aria-label="Portal"><a href="${portalPath(site)}">Overview</a> <a href="${portalPath(site, "redemptions")}">Redemptions</a>
${readsWebhooks ? html`<a href="${portalPath(site, "webhooks")}">Webhooks</a>` : null}</nav>
${sandbox ? SANDBOX_NOTICE : null}
<form class="check" role="search" action="${portalPath(site)}" method="get">
<label for="words">Find an order</label>
<p class="fine" id="words-help">By your order reference, a voucher's code or a redeem code.</p>
<div class="row"><input id="words" name="words" type="search" value="${entered}" required maxlength="${SEARCH_MAX}" autocomplete="off"
 autocapitalize="off" spellcheck="false" aria-describedby="words-help">
<button type="submit">Find</button></div>
</form>
`;
}

/** A page of the portal. */
export function layOutForPortal(
  site: Site,
  caller: PortalCaller,
  page: { title: string; main: Html; entered?: string; scripts?: Parameters<typeof layOut>[1]["scripts"] },
): Html {
  const { title, main, entered, scripts = [] } = page;
  const top = renderTop(site, caller, entered);
  return layOut(site, { title: `${title} · Portal`, scripts, main: html`${top}${main}` });
}

/** A key by its label, or by its id if it has none. */
export function renderKey(keyId: string, label: string | null): Html {
  return label === null ? html`<code>${keyId}</code>` : html`<bdi>${label}</bdi>`;
}

/** The number and the value of redemptions. */
export interface Total {
  redemptions: number;
  cents: number;
}

export function totalOf(sums: readonly RedemptionSum[]): Total {
  const add = (field: keyof Total) => sums.reduce((total, sum) => total + sum[field], 0);
  return { redemptions: add("redemptions"), cents: add("cents") };
}

/** Cents as dollars. Exact below 2^53 cents. */
export function formatCents(cents: number): string {
  return USD.format(cents / 100);
}

export function describeTotal({ redemptions, cents }: Total): Html {
  return html`<strong>${COUNT.format(redemptions)} ${redemptions === 1 ? "redemption" : "redemptions"}, ${formatCents(cents)}</strong>`;
}
