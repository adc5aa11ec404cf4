import { findVoucherFace } from "../core/catalog/db/brand-faces.ts";
import type { PublicEvent } from "../core/chain/api/events.ts";
import { readPublicChain } from "../core/chain/read-chain.ts";
import { readConfirmed } from "../core/commit/confirm-reads.ts";
import { statusAt, type VoucherStatus } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import type { DepsOf } from "../platform/http/endpoint.ts";
import type { Visitor } from "../platform/http/middleware/caller-signal.ts";
import { EXPERTS, historyPath } from "./chain-page.ts";
import { describeEvent } from "./event-words.ts";
import { type Html, html } from "./html.ts";
import { layOut, renderSandboxNotice, type Site } from "./layout.ts";
import type { Locale } from "./locale.ts";
import { MINUTES } from "./time.ts";

/** Events of one voucher that the page shows. No voucher has as many. */
const EVENTS_MAX = 1_000;

const TONES = {
  Active: "good",
  Redeemed: "plain",
  Voided: "bad",
  Expired: "bad",
  Suspended: "waiting",
} as const satisfies Record<VoucherStatus, string>;

/**
 * The public page of a voucher, for the person who has it: what it is, whose it is, and its status. Everything that
 * proves this is on the page for experts.
 */
export async function renderVoucher(
  deps: DepsOf<typeof readPublicChain> & { config: Site },
  visitor: Visitor,
  { entityType, entityId }: { entityType: string; entityId: string },
  locale: Locale,
): Promise<Html> {
  const chain = await readPublicChain(deps, visitor, entityType, entityId, { after: 0, limit: EVENTS_MAX });
  const read = () => deps.publicReads(visitor, () => findVoucherFace(deps.pool, entityId));
  const voucher = await readConfirmed(deps, read);
  if (voucher === null) throw new AppError("entity_not_found");
  const { productName, brand, validUntil, now } = voucher;
  const status = statusAt(voucher, now);
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
${renderDate(status, validUntil, chain.events, locale)}
<section aria-labelledby="happened">
<h2 id="happened">${t("chain.happened")}</h2>
<ol class="life">
${chain.events.map((event) => renderEntry(event, locale))}</ol>
</section>
<p><a href="${historyPath(deps.config, chain)}${EXPERTS}">${t("chain.forExperts")}</a></p>`,
  });
}

/** The date that matters in the voucher's status: its end, or when it was used or cancelled. */
function renderDate(status: VoucherStatus, validUntil: Date, events: readonly PublicEvent[], locale: Locale): Html {
  const { t, time } = locale;
  const shown = (name: string, at: string | Date) =>
    html`<dl class="facts"><div><dt>${name}</dt><dd>${time(at, MINUTES)}</dd></div></dl>`;
  if (status === "Active" || status === "Suspended") return shown(t("portal.columns.validUntil"), validUntil);
  if (status === "Expired") return shown(t("events.voucher.instance.expired.title"), validUntil);
  const type = status === "Redeemed" ? "voucher.instance.redeemed" : "voucher.instance.voided";
  const event = events.findLast(({ eventType }) => eventType === type);
  return event === undefined ? html`` : shown(t(`events.${type}.title`), event.occurredAt);
}

function renderEntry({ eventType, occurredAt }: PublicEvent, locale: Locale): Html {
  const { title, sentence } = describeEvent(eventType, locale);
  return html`<li><p class="when">${locale.time(occurredAt, MINUTES)}</p>
<p><strong>${title}</strong> ${sentence}</p></li>
`;
}
