import type { FoundVoucher } from "../../contract/voucher-history.ts";
import type { NamedBrand } from "../../db/catalog.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { linkActions, type OperatedSite } from "./action-links.ts";
import {
  layOutForOperators,
  linkOrganization,
  linkVoucher,
  opsPath,
  renderSandbox,
  renderStatus,
  renderTable,
} from "./operator-frame.ts";

/** Brands with their organizations. */
export function renderBrandsPage(
  site: OperatedSite,
  { brands, hasMore }: { brands: readonly NamedBrand[]; hasMore: boolean },
): Html {
  const last = brands.at(-1);
  return layOutForOperators(
    site,
    "Organizations",
    html`<h1>Organizations</h1>
${linkActions(site, ["organizations"], ["new", "New organization"])}
${renderTable(
  "Brands",
  ["Brand", "Organization"],
  brands.map((brand) => [
    html`<a href="${opsPath(site, "brands", brand.id)}"><bdi>${brand.name}</bdi></a>${renderSandbox(brand.sandbox)}`,
    linkOrganization(site, brand.organizationId, brand.organization),
  ]),
  html`There are no brands. Create one with <code>voucherctl brand create</code>.`,
)}
${hasMore && last !== undefined ? html`<p><a rel="next" href="${opsPath(site, "organizations")}?after=${encodeURIComponent(last.id)}">Newer brands</a></p>` : null}`,
  );
}

/** The page of a search: the vouchers that it found. */
export function renderSearchPage(site: Site, words: string, found: readonly FoundVoucher[]): Html {
  return layOutForOperators(
    site,
    "Find a voucher",
    html`<h1>${found.length === 0 ? "No voucher found" : `${found.length} ${found.length === 1 ? "voucher" : "vouchers"}`}</h1>
${
  found.length === 0
    ? html`<p class="lead">No voucher of any organization has this code, id, ticket, reference or redeem code.</p>`
    : renderTable(
        "Vouchers found",
        ["Voucher", "Status", "Product", "Organization", "Reference"],
        found.map((voucher) => [
          linkVoucher(site, voucher.id),
          html`${renderStatus(voucher.status)}${renderSandbox(voucher.sandbox)}`,
          `${voucher.productName}, ${voucher.brand}`,
          linkOrganization(site, voucher.organizationId),
          voucher.externalRef ?? "",
        ]),
      )
}`,
    words,
  );
}
