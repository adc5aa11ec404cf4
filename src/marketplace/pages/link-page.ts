import { type Html, html } from "../../pages/html.ts";
import { layOut, renderSandboxNotice, type Site } from "../../pages/layout.ts";
import type { Locale } from "../../pages/locale.ts";
import { qrCode } from "../../pages/qr-code.ts";
import type { PageTexts } from "../../pages/texts/page-texts.ts";
import { MINUTES } from "../../pages/time.ts";
import { type DepsOf, pathId } from "../../platform/http/endpoint.ts";
import type { Visitor } from "../../platform/http/middleware/caller-signal.ts";
import { type LinkOffer, linkAddress, viewLink } from "../view-link.ts";

const TEXT_OF = { open: "open", window_closed: "windowClosed", sold_out: "soldOut" } as const satisfies Record<
  LinkOffer["state"],
  keyof PageTexts["link"]
>;

/** The public page of a referrer's link: what it offers, and how to claim it. */
export async function renderLink(
  deps: DepsOf<typeof viewLink> & { config: Site },
  visitor: Visitor,
  given: unknown,
  locale: Locale,
): Promise<Html> {
  const code = pathId(given);
  const { product, state, validUntil, sandbox } = await viewLink(deps, visitor, code);
  const { productName, brand, retailPriceUsd, benefitMonths } = product;
  const site = deps.config;
  const address = linkAddress(site, code);
  const storefront = site.storefrontUrl?.replaceAll("{code}", encodeURIComponent(code)) ?? null;
  const { link, frame } = locale.texts;
  const [badge, sentence] = link[TEXT_OF[state]];
  const ofBrand = html`<bdi>${brand}</bdi>`;
  return layOut(site, {
    locale,
    title: link.title(productName, brand),
    description: link.description(productName, brand),
    address,
    main: html`<h1>${frame.from(html`<bdi>${productName}</bdi>`, ofBrand)}</h1>
${sandbox ? renderSandboxNotice(locale) : null}
<p class="lead">${link.lead(ofBrand)}</p>
<dl class="facts">
<div><dt>${link.now}</dt><dd><span class="badge ${state === "open" ? "good" : "waiting"}">${badge}</span> ${sentence}\
</dd></div>
<div><dt>${link.worth}</dt><dd>${locale.usd.format(retailPriceUsd)}</dd></div>
${benefitMonths === 0 ? null : html`<div><dt>${link.lasts}</dt><dd>${frame.months(benefitMonths)}</dd></div>`}
${validUntil === null ? null : html`<div><dt>${link.useBy}</dt><dd>${locale.time(validUntil, MINUTES)}</dd></div>`}
</dl>
${
  storefront === null
    ? null
    : html`<p><a class="button" href="${storefront}">${link.goOn(new URL(storefront).host)}\
</a></p>`
}
<section aria-labelledby="how">
<h2 id="how">${link.how}</h2>
<ol class="how">
<li>${link.signIn(ofBrand)}</li>
<li>${link.enter} <code>${code}</code></li>
<li>${link.yours}</li>
</ol>
</section>
<section aria-labelledby="carry">
<h2 id="carry">${link.onPhone}</h2>
<p>${link.camera}</p>
${qrCode(address)}
</section>
<section aria-labelledby="programs" class="fine">
<h2 id="programs">${link.forApp}</h2>
<p>${link.claims(html`<code>$USER_TOKEN</code>`)} <a href="${site.basePath}/docs">${link.reference}</a></p>
<pre><code>curl -s -X POST '${address}/claim' -H "Authorization: Bearer $USER_TOKEN"</code></pre>
</section>`,
  });
}
