import type { Place } from "../../db/catalog.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { opsPath, renderSandbox } from "./operator-frame.ts";

/** The pages of what an entity belongs to, from the organization down, with its own if it has one. */
function stepsTo(site: Site, place: Place): { path: string; label: string }[] {
  const steps = [
    ["organizations", place.organizationId, place.organizationName],
    ["brands", place.brandId, place.brandName],
    ["products", place.productId, place.productName],
    ["batches", place.batchId, "Batch"],
    ["contracts", place.contractId, `Contract with ${place.userId}`],
    ["webhooks", place.webhookId, place.url],
    ["vouchers", place.voucherId, "Voucher"],
  ] as const;
  return steps.flatMap(([collection, id, label]) =>
    id === null ? [] : [{ path: opsPath(site, collection, id), label: String(label) }],
  );
}

/** The page of an entity; of a key, which has none, that of its organization. */
export function pathOf(site: Site, place: Place): string {
  return String(stepsTo(site, place).at(-1)?.path);
}

/** Links to what an entity belongs to. */
export function renderTrail(site: Site, place: Place): Html {
  const links = stepsTo(site, place).map(
    ({ path, label }) => html`<li><a href="${path}"><bdi>${label}</bdi></a></li> `,
  );
  return html`<nav class="trail" aria-label="Where"><ol>${links}</ol>${renderSandbox(place.sandbox)}</nav>`;
}
