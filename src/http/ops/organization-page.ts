import type { ListedKey } from "../../db/api-keys.ts";
import type { BatchSummary, Place } from "../../db/catalog.ts";
import type { OrganizationPage, OrganizationSummary } from "../../services/admin/read-organization.ts";
import { type Html, html } from "../pages/html.ts";
import { MINUTES, renderTime } from "../pages/time.ts";
import { linkActions, type OperatedSite } from "./action-links.ts";
import {
  COUNT,
  layOutForOperators,
  linkBatch,
  linkVoucher,
  opsPath,
  renderFacts,
  renderSandbox,
  renderStatus,
  renderTable,
  USD,
} from "./operator-frame.ts";
import { renderTrail } from "./render-trail.ts";
import { renderWebhooks } from "./webhook-page.ts";

/** The list of batches counts the vouchers left in a batch up to this number; the database, up to one more. */
const LEFT_MAX = 1_000;

/** An organization: its brands, a page of redemptions, a page of batches, a page of API keys, and its webhook endpoints. */
export function renderOrganizationPage(
  site: OperatedSite,
  organization: OrganizationSummary,
  page: OrganizationPage,
): Html {
  const { id, brands, redemptions, batches, keys, webhooks } = organization;
  const path = opsPath(site, "organizations", id);
  const oldest = redemptions.at(-1);
  const oldestBatch = batches.at(-1);
  const oldestKey = keys.at(-1);
  return layOutForOperators(
    site,
    `Organization ${id}`,
    html`<h1>${organization.name}${renderSandbox(organization.sandbox)}</h1>
${renderFacts([
  ["Organization", html`<code>${id}</code>`],
  [
    "Brands",
    brands.length === 0
      ? "none"
      : html`${brands.map(({ id, name }) => html`<a href="${opsPath(site, "brands", id)}"><bdi>${name}</bdi></a> `)}`,
  ],
])}
${linkActions(site, ["organizations", id], ["brands/new", "New brand"], ["keys/new", "New API key"])}
<section aria-labelledby="redemptions">
<h2 id="redemptions">${page.redemptionsBefore === null ? "Last redemptions" : "Earlier redemptions"}</h2>
${renderTable(
  "Redemptions",
  ["Redeemed", "Reference", "Voucher", "Product", "Price"],
  redemptions.map((redemption) => [
    renderTime(redemption.redeemedAt, MINUTES),
    redemption.reference,
    linkVoucher(site, redemption.voucherId),
    redemption.productName,
    USD.format(redemption.priceUsd),
  ]),
)}
${
  organization.moreRedemptions && oldest !== undefined
    ? html`<p><a rel="next" href="${path}?redeemedBefore=${oldest.redeemedAt.toISOString()}&voucherBefore=${encodeURIComponent(oldest.voucherId)}">Earlier redemptions</a></p>`
    : null
}
</section>
<section aria-labelledby="batches">
<h2 id="batches">Batches</h2>
<p>What is left in a batch's windows is counted up to ${COUNT.format(LEFT_MAX)}. The batch's page counts all of its vouchers.</p>
${renderTable(
  "Batches",
  ["Batch", "Product", "Issued", "Left in windows", "Valid until"],
  batches.map((batch) => [
    linkBatch(site, batch.id),
    batch.productName,
    COUNT.format(batch.count),
    batch.hasWindow
      ? batch.left > LEFT_MAX
        ? `more than ${COUNT.format(LEFT_MAX)}`
        : String(batch.left)
      : "no window",
    html`${renderTime(batch.validUntil, MINUTES)}${batch.isValid ? null : html` <span class="badge waiting">Expired</span>`}`,
  ]),
)}
${organization.moreBatches && oldestBatch !== undefined ? html`<p><a rel="next" href="${path}?batchesBefore=${encodeURIComponent(oldestBatch.id)}">Earlier batches</a></p>` : null}
</section>
<section aria-labelledby="keys">
<h2 id="keys">${page.keysBefore === null ? "API keys" : "Earlier API keys"}</h2>
${renderTable(
  "API keys",
  ["Key", "State", "Last used", "Scopes", "Created"],
  // The search links to the id of a key.
  keys.map((key) => [
    html`<code id="${key.id}">${key.id}</code>${key.label === null ? null : html`<br>${key.label}`}`,
    html`${renderKeyState(key)}${key.state === "Active" ? linkActions(site, ["keys", key.id], ["rotate", "Rotate"], ["revoke", "Revoke"]) : null}`,
    key.lastUsedAt === null ? "never" : renderTime(key.lastUsedAt, MINUTES),
    key.scopes.join(", "),
    renderTime(key.createdAt, MINUTES),
  ]),
)}
${organization.moreKeys && oldestKey !== undefined ? html`<p><a rel="next" href="${path}?keysBefore=${encodeURIComponent(oldestKey.id)}#keys">Earlier keys</a></p>` : null}
</section>
<section aria-labelledby="webhooks">
<h2 id="webhooks">Webhook endpoints</h2>
${renderWebhooks(site, webhooks)}
</section>`,
  );
}

/** The state of a key, and when it began; of an active key, when it ends. */
function renderKeyState({ state, revokedAt, expiresAt }: ListedKey): Html {
  const at = revokedAt ?? expiresAt;
  return html`${renderStatus(state)}${at === null ? null : html` ${state === "Active" ? "until " : ""}${renderTime(at, MINUTES)}`}`;
}

/** A batch with the number of its vouchers in each status, and its listing. */
export function renderBatchPage(site: OperatedSite, batch: BatchSummary, place: Place, listingId: string | null): Html {
  const { claim, buy } = batch.windows;
  const kinds = [claim === null ? [] : ["claim"], buy === null ? [] : ["buy"]].flat();
  return layOutForOperators(
    site,
    `Batch ${batch.id}`,
    html`${renderTrail(site, place)}<h1>Batch${renderSandbox(batch.sandbox)}</h1>
${renderFacts([
  ["Id", html`<code>${batch.id}</code>`],
  ["Product", html`<a href="${opsPath(site, "products", batch.productId)}"><bdi>${batch.productName}</bdi></a>`],
  ["Price", USD.format(batch.priceUsd)],
  ["Audience", batch.audience],
  ["Windows", kinds.length === 0 ? "none" : kinds.join(", ")],
  ["Valid until", renderTime(batch.validUntil)],
  ["Issued", `${COUNT.format(batch.count)} vouchers`],
  [
    "Listing",
    listingId === null
      ? null
      : html`<a href="${site.basePath}/marketplace/listings/${listingId}"><code>${listingId}</code></a>`,
  ],
])}
${linkActions(
  site,
  ["batches", batch.id],
  ["print", "Print sheet"],
  ["codes.csv", "Codes as CSV"],
  ...(listingId === null ? [["listings/new", "List on the marketplace"] as const] : []),
  ...(batch.active === 0 ? [] : [["void", "Void the batch"] as const]),
)}
${linkActions(site, ["organizations", place.organizationId], ["keys/new", "New API key"])}
<h2>What is left</h2>
${renderFacts([
  ["Active", COUNT.format(batch.active)],
  ["Left in windows", batch.left === null ? null : COUNT.format(batch.left)],
  ["Redeemed", COUNT.format(batch.redeemed)],
  ["Expired", COUNT.format(batch.expired)],
  ["Voided", COUNT.format(batch.voided)],
])}`,
  );
}
