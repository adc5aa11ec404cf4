import type { PublicEvent } from "../core/chain/api/events.ts";
import { readPublicChain } from "../core/chain/read-chain.ts";
import { statusAt, type VoucherStatus } from "../core/voucher/voucher.ts";
import type { DepsOf } from "../platform/http/endpoint.ts";
import type { Visitor } from "../platform/http/middleware/caller-signal.ts";
import { nameContact } from "./brand-files.ts";
import { EXPERTS, historyPath, readFace } from "./chain-page.ts";
import { describeEvent } from "./event-words.ts";
import { type Html, html } from "./html.ts";
import { layOut, renderSandboxNotice, type Site } from "./layout.ts";
import type { Locale } from "./locale.ts";
import { type Fact, renderFacts } from "./operator-frame.ts";
import { MINUTES } from "./time.ts";

/** More events than any voucher has. */
const EVENTS_MAX = 1_000;

const TONES = {
  Active: "good",
  Redeemed: "plain",
  Voided: "bad",
  Expired: "bad",
  Suspended: "waiting",
} as const satisfies Record<VoucherStatus, string>;

/** The public page of a voucher, for its holder: the product, its value, the brand, the status and the contact. */
export async function renderVoucher(
  deps: DepsOf<typeof readPublicChain> & { config: Site },
  visitor: Visitor,
  { entityType, entityId }: { entityType: string; entityId: string },
  ofReader: Locale,
): Promise<Html> {
  const chain = await readPublicChain(deps, visitor, entityType, entityId, { after: 0, limit: EVENTS_MAX });
  const voucher = await readFace(deps, visitor, entityId);
  const { productName, brand, retailPriceUsd, benefitMonths } = voucher;
  const status = statusAt(voucher, voucher.now);
  const locale = ofReader.in(voucher.timeZone);
  const { t, markup } = locale;
  const names = { product: html`<bdi>${productName}</bdi>`, brand: html`<bdi>${brand}</bdi>` };
  return layOut(deps.config, {
    locale,
    face: voucher,
    title: t("marketplace.link.title", { product: productName, brand }),
    description: t(`chain.states.${status}`),
    main: html`<h1>${markup("frame.from", names)}</h1>
${chain.sandbox ? renderSandboxNotice(locale) : null}
<p class="verdict ${TONES[status]}" id="status"><strong>${t(`chain.states.${status}`)}</strong></p>
${renderFacts([
  [t("frame.worth"), locale.usd.format(retailPriceUsd)],
  [t("frame.lasts"), benefitMonths === 0 ? null : t("frame.months", { months: benefitMonths })],
  dateOf(status, voucher.validUntil, chain.events, locale),
])}
<p>${markup(status === "Active" ? "frame.toUse" : "frame.ask", { brand: nameContact(deps.config, brand) })}</p>
<section aria-labelledby="happened">
<h2 id="happened">${t("chain.happened")}</h2>
<ol class="life">
${chain.events.map((event) => renderEntry(event, locale))}</ol>
</section>
<p><a href="${historyPath(deps.config, chain)}${EXPERTS}">${t("chain.forExperts")}</a></p>`,
  });
}

/** The date that matters in the voucher's status: its end, or when it was used or cancelled. */
function dateOf(status: VoucherStatus, validUntil: Date, events: readonly PublicEvent[], locale: Locale): Fact {
  const { t } = locale;
  if (status !== "Redeemed" && status !== "Voided") return [t("portal.columns.validUntil"), locale.end(validUntil)];
  const type = status === "Redeemed" ? "voucher.instance.redeemed" : "voucher.instance.voided";
  const event = events.findLast(({ eventType }) => eventType === type);
  return [t(`events.${type}.title`), event === undefined ? null : locale.time(event.occurredAt, MINUTES)];
}

function renderEntry({ eventType, occurredAt }: PublicEvent, locale: Locale): Html {
  const { title, sentence } = describeEvent(eventType, locale);
  return html`<li><p class="when">${locale.time(occurredAt, MINUTES)}</p>
<p><strong>${title}</strong> ${sentence}</p></li>
`;
}
