import { linkAddress } from "../../core/voucher/codes.ts";
import { nameContact } from "../../pages/brand-files.ts";
import { type Html, html } from "../../pages/html.ts";
import { layOut, renderSandboxNotice, type Site } from "../../pages/layout.ts";
import type { Locale } from "../../pages/locale.ts";
import { renderFacts } from "../../pages/operator-frame.ts";
import { type DepsOf, pathId } from "../../platform/http/endpoint.ts";
import type { Visitor } from "../../platform/http/middleware/caller-signal.ts";
import { type LinkOffer, viewLink } from "../view-link.ts";

const NAME_OF = { open: "open", window_closed: "windowClosed", sold_out: "soldOut" } as const satisfies Record<
  LinkOffer["state"],
  string
>;

/** The public page of a referrer's link, with its offer and how to claim a voucher. */
export async function renderLink(
  deps: DepsOf<typeof viewLink> & { config: Site },
  visitor: Visitor,
  given: unknown,
  ofReader: Locale,
): Promise<Html> {
  const code = pathId(given);
  const { product, state, validUntil, sandbox } = await viewLink(deps, visitor, code);
  const { productName, brand, retailPriceUsd, benefitMonths, timeZone } = product;
  const locale = ofReader.in(timeZone);
  const site = deps.config;
  const address = linkAddress(site, code);
  const storefront = site.storefrontUrl?.replaceAll("{code}", encodeURIComponent(code)) ?? null;
  const { t, markup } = locale;
  const said = `marketplace.link.${NAME_OF[state]}` as const;
  const ofBrand = html`<bdi>${brand}</bdi>`;
  return layOut(site, {
    locale,
    face: product,
    title: t("marketplace.link.title", { product: productName, brand }),
    description: t("marketplace.link.description", { product: productName, brand }),
    address,
    main: html`<h1>${markup("frame.from", { product: html`<bdi>${productName}</bdi>`, brand: ofBrand })}</h1>
${sandbox ? renderSandboxNotice(locale) : null}
${state === "open" ? html`<p class="lead">${markup("marketplace.link.lead", { brand: ofBrand })}</p>` : null}
${renderFacts([
  [
    t("marketplace.link.now"),
    html`<span class="badge ${state === "open" ? "good" : "waiting"}">${t(`${said}.badge`)}</span> \
${t(`${said}.sentence`)}`,
  ],
  [t("frame.worth"), locale.usd.format(retailPriceUsd)],
  [t("frame.lasts"), benefitMonths === 0 ? null : t("frame.months", { months: benefitMonths })],
  [t("marketplace.link.useBy"), validUntil && locale.end(validUntil)],
])}
${state !== "open" ? null : storefront === null ? renderSteps(code, brand, locale) : renderButton(storefront, locale)}
<p>${markup("frame.ask", { brand: nameContact(site, brand) })}</p>
<details class="experts"><summary>${t("frame.experts")}</summary>
<section aria-labelledby="programs" class="fine">
<h2 id="programs">${t("marketplace.link.forApp")}</h2>
<p>${markup("marketplace.link.claims", { token: html`<code>$USER_TOKEN</code>` })} \
<a href="${site.basePath}/docs">${t("marketplace.link.reference")}</a></p>
<pre><code>curl -s -X POST '${address}/claim' -H "Authorization: Bearer $USER_TOKEN"</code></pre>
</section>
</details>`,
  });
}

const renderButton = (storefront: string, { t }: Locale) =>
  html`<p><a class="button" href="${storefront}">${t("marketplace.link.goOn", { host: new URL(storefront).host })}\
</a></p>`;

/** Where to get the voucher if no storefront is configured. */
const renderSteps = (code: string, brand: string, { t, markup }: Locale) => html`<section aria-labelledby="how">
<h2 id="how">${t("marketplace.link.how")}</h2>
<ol class="how">
<li>${markup("marketplace.link.signIn", { brand: html`<bdi>${brand}</bdi>` })}</li>
<li>${t("marketplace.link.enter")} <code>${code}</code></li>
<li>${t("marketplace.link.yours")}</li>
</ol>
</section>`;
