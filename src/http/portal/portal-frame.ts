import type { Caller } from "../../services/auth/caller.ts";
import { type Html, html } from "../pages/html.ts";
import { layOut, type Site } from "../pages/layout.ts";

/** The path of the portal, after the base path. */
export const PORTAL_PATH = "/portal";

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
  const path = portalPath(site);
  return html`<nav class="ops" aria-label="Portal"><a href="${path}">Overview</a> <a href="${path}/redemptions">Redemptions</a> ${readsWebhooks ? html`<a href="${path}/webhooks">Webhooks</a>` : null}</nav>
${sandbox ? html`<p class="notice" id="sandbox"><strong>Sandbox.</strong> These are test vouchers. They have no value.</p>` : null}
<form class="check" role="search" action="${path}" method="get">
<label for="words">Find an order</label>
<p class="fine" id="words-help">By your order reference, a voucher's code or a redeem code.</p>
<div class="row"><input id="words" name="words" type="search" value="${entered}" required maxlength="500" autocomplete="off"
 autocapitalize="off" spellcheck="false" aria-describedby="words-help">
<button type="submit">Find</button></div>
</form>
`;
}

/** A page of the portal. */
export function layOutForPortal(site: Site, caller: PortalCaller, title: string, main: Html, entered = ""): Html {
  return layOut(site, { title: `${title} · Portal`, main: html`${renderTop(site, caller, entered)}${main}` });
}

/** A key by its label, or by its id if it has none. */
export function renderKey({ keyId, keyLabel }: { keyId: string; keyLabel: string | null }): Html {
  return keyLabel === null ? html`<code>${keyId}</code>` : html`<bdi>${keyLabel}</bdi>`;
}
