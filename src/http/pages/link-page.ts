import type { ApiContext } from "../../open-api.ts";
import { type LinkOffer, viewLink } from "../../services/marketplace/view-link.ts";
import { pathId } from "../endpoint.ts";
import { type Html, html } from "./html.ts";
import { layOut, SANDBOX_NOTICE } from "./layout.ts";
import { qrCode } from "./qr-code.ts";
import { MINUTES, renderTime } from "./time.ts";

const STATES: Record<LinkOffer["state"], { badge: Html; sentence: string }> = {
  open: { badge: html`<span class="badge good">Available</span>`, sentence: "Each person gets one voucher." },
  window_closed: {
    badge: html`<span class="badge waiting">Not open</span>`,
    sentence: "This offer is not open at the moment. Come back later.",
  },
  sold_out: {
    badge: html`<span class="badge waiting">None left</span>`,
    sentence: "No vouchers are left at the moment.",
  },
};

/** The public page of a referrer's link: what it offers, and how to claim it. */
export async function renderLink(ctx: ApiContext, given: unknown): Promise<Html> {
  const code = pathId(given);
  const { product, state, validUntil, sandbox } = await viewLink(ctx, code);
  const { productName, brand, retailPriceUsd, benefitMonths } = product;
  const site = ctx.config;
  const address = `${site.baseUrl}/r/${encodeURIComponent(code)}`;
  const storefront = site.storefrontUrl?.replaceAll("{code}", encodeURIComponent(code)) ?? null;
  const { badge, sentence } = STATES[state];
  return layOut(site, {
    title: `${productName} from ${brand}`,
    description: `A free voucher for ${productName} from ${brand}.`,
    main: html`<h1><bdi>${productName}</bdi> from <bdi>${brand}</bdi></h1>
${sandbox ? SANDBOX_NOTICE : null}
<p class="lead">A referrer of <bdi>${brand}</bdi> shares this link with you. With it you get a voucher for free.</p>
<dl class="facts">
<div><dt>Now</dt><dd>${badge} ${sentence}</dd></div>
<div><dt>Worth</dt><dd>${USD.format(retailPriceUsd)}</dd></div>
${benefitMonths === 0 ? null : html`<div><dt>Lasts</dt><dd>${renderMonths(benefitMonths)}</dd></div>`}
${validUntil === null ? null : html`<div><dt>Use it by</dt><dd>${renderTime(validUntil, MINUTES)}</dd></div>`}
</dl>
${storefront === null ? null : html`<p><a class="button" href="${storefront}">Continue to ${new URL(storefront).host}</a></p>`}
<section aria-labelledby="how">
<h2 id="how">How to claim</h2>
<ol class="how">
<li>Sign in to the app or shop in which you collect vouchers of <bdi>${brand}</bdi>.</li>
<li>Open this link there, or enter its code: <code>${code}</code></li>
<li>The voucher is yours. If you claim again, you get the same one.</li>
</ol>
</section>
<section aria-labelledby="carry">
<h2 id="carry">On your phone</h2>
<p>Point your phone's camera at this code to open this page there.</p>
${qrCode(address)}
</section>
<section aria-labelledby="programs" class="fine">
<h2 id="programs">For the app</h2>
<p>The app claims with the token of its signed-in user in <code>$USER_TOKEN</code>. <a href="${site.basePath}/docs">The API reference</a> describes the answer.</p>
<pre><code>curl -s -X POST '${address}/claim' -H "Authorization: Bearer $USER_TOKEN"</code></pre>
</section>`,
  });
}

/** The duration of a benefit. */
export function renderMonths(months: number): string {
  return months === 1 ? "1 month" : `${months} months`;
}

export const USD = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
