import type { FoundVoucher } from "../../contract/voucher-history.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import {
  layOutForOperators,
  linkOrganization,
  linkVoucher,
  opsPath,
  renderSandbox,
  renderStatus,
  renderTable,
} from "./operator-frame.ts";

/** Something with a page of its own whose name was searched for. */
export interface Named {
  collection: "organizations" | "brands" | "products";
  id: string;
  name: string;
}

const KINDS = { organizations: "Organization", brands: "Brand", products: "Product" };

/** The page of a search: the vouchers that it found, or else what has the words in its name. */
export function renderSearchPage(
  site: Site,
  words: string,
  found: readonly FoundVoucher[],
  named: readonly Named[],
): Html {
  return layOutForOperators(
    site,
    "Find a voucher",
    html`<h1>${found.length > 0 ? `${found.length} vouchers` : named.length > 0 ? "Found by name" : "Nothing found"}</h1>
${
  found.length === 0
    ? renderTable(
        "Found by name",
        ["Name", "What it is"],
        named.map(({ collection, id, name }) => [
          html`<a href="${opsPath(site, collection, id)}"><bdi>${name}</bdi></a>`,
          KINDS[collection],
        ]),
        html`No voucher of any organization has this code, id, ticket, reference or redeem code, and no organization, brand or product this name.`,
      )
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
