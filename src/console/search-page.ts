import { searchVouchers } from "../acts/across-organizations.ts";
import { LISTS } from "../acts/db/lists.ts";
import { listCatalog } from "../acts/list-catalog.ts";
import { findKeyPlace } from "../core/keys/db/api-keys.ts";
import { keptRequestId } from "../core/processes/observe-requests.ts";
import { findCallers, NO_ORGANIZATION } from "../core/processes/partner-calls.ts";
import type { TokenSecret } from "../core/reserve/reservation-token.ts";
import { Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import {
  layOutForOperators,
  linkTo,
  opsPath,
  renderSandbox,
  renderStatus,
  renderTable,
  SEARCH_MAX,
} from "../pages/operator-frame.ts";
import { AppError } from "../platform/api/errors.ts";
import type { DepsOf } from "../platform/http/endpoint.ts";
import { PAGE_SIZE } from "./organization-page.ts";
import type { Page, Visit } from "./visit.ts";

/** The dependencies for finding a call by its request id. */
export type FindingCalls = DepsOf<typeof findCallers> & { tokenSecrets: readonly TokenSecret[] };

/** The empty search page. Ignores the query: a code must not be part of a URL, which proxies log. */
export const findPage: Page = async ({ site }) => layOutForOperators(site, "Find", html`<h1>Find</h1>`);

/**
 * Opens the page of the entity that the entered text identifies. If there is none, lists the vouchers that the text
 * identifies. If there are none, lists the entities whose names contain the text.
 */
export const searchPage: Page<FindingCalls> = async (visit) => {
  const { ctx, site, seesCredentials, entered, recordVisit } = visit;
  const words = entered("words").slice(0, SEARCH_MAX);
  const found = await searchVouchers(ctx, words, seesCredentials);
  const [only, ...others] = found;
  // Records no search here, because the voucher's page records the view.
  if (only !== undefined && others.length === 0) return opsPath(site, "vouchers", only.id);
  const record = () => recordVisit("page search", { type: "Search", id: "vouchers" }, { found: found.length });
  if (only === undefined) {
    const page = await findByIdOrRequest(visit, words.trim()).catch(async (error) => {
      await record();
      throw error;
    });
    if (page instanceof Html) await record();
    if (page !== null) return page;
  }
  await record();
  const named = only === undefined ? await findNamed(visit, words.trim()) : [];
  const [title, table] =
    only === undefined
      ? [
          named.length > 0 ? "Found by name" : "Nothing found",
          renderTable(
            "Found by name",
            ["Name", "What it is"],
            named,
            html`No voucher of any organization has this \
${seesCredentials ? "code, id, ticket, reference or redeem code" : "id or reference"}, no kept call this \
request id, and no organization, brand or product this name.${
              seesCredentials ? null : html` Viewers do not search by code, ticket or redeem code.`
            } Where else to look for a call: ${otherPlaces(site)}`,
          ),
        ]
      : [
          `${found.length} vouchers`,
          renderTable(
            "Vouchers found",
            ["Voucher", "Status", "Product", "Organization", "Reference"],
            found.map((voucher) => [
              linkTo(site, "vouchers", voucher.id),
              html`${renderStatus(voucher.status)}${renderSandbox(voucher.sandbox)}`,
              `${voucher.productName}, ${voucher.brand}`,
              linkTo(site, "organizations", voucher.organizationId),
              html`<bdi>${voucher.externalRef ?? ""}</bdi>`,
            ]),
            "",
          ),
        ];
  return layOutForOperators(site, title, html`<h1>${title}</h1>\n${table}`, words);
};

/**
 * The URL of the page of an organization, a batch, a webhook endpoint or a key with this id. Null for any other text.
 * @throws AppError `not_found` for a key that does not exist or has no organization.
 */
async function findById({ ctx, site }: Visit, words: string): Promise<string | null> {
  const [, prefix] = /^(org|bat|whk|key)_[0-9a-z]{26}$/.exec(words) ?? [];
  if (prefix === undefined) return null;
  if (prefix !== "key") {
    return opsPath(site, prefix === "org" ? "organizations" : prefix === "bat" ? "batches" : "webhooks", words);
  }
  const key = await findKeyPlace(ctx.pool, { keyId: words, pageSize: PAGE_SIZE });
  if (key === null) throw new AppError("not_found", `There is no key ${words}.`);
  const { organizationId, before } = key;
  if (organizationId === null) {
    throw new AppError("not_found", `Key ${words} has no organization, so every request with it is refused.`);
  }
  return `${opsPath(site, "organizations", organizationId)}${before === null ? "" : `?keysBefore=${before}`}#${words}`;
}

/**
 * The URL of the page for an id, or of the calls of the last hour with this request id. If several organizations had
 * such calls, returns a page that lists them. Null for any other text.
 */
async function findByIdOrRequest(visit: Visit<FindingCalls>, words: string): Promise<Html | string | null> {
  const page = await findById(visit, words);
  const given = keptRequestId(visit.ctx.tokenSecrets, words);
  if (page !== null || given === null) return page;
  const findLinks = async (requestId: string) => {
    // The search must work even while Redis does not answer.
    const found = await findCallers(visit.ctx, requestId, CALLERS_MAX).catch(() => []);
    return found.map((id) => {
      const path = opsPath(visit.site, ...(id === NO_ORGANIZATION ? ["calls"] : ["organizations", id, "calls"]));
      return { id, path: `${path}?request=${encodeURIComponent(requestId)}` };
    });
  };
  const links = [...(await findLinks(words)), ...(await findLinks(given))].slice(0, CALLERS_MAX);
  const [only, ...others] = links;
  if (only === undefined || others.length === 0) return only?.path ?? null;
  const rows = links.map(({ id, path }) => [
    html`<a href="${path}">\
${id === NO_ORGANIZATION ? "Calls with unknown keys" : html`Calls of <code>${id}</code>`}</a>`,
  ]);
  const main = html`<h1>Found in calls of ${links.length} organizations</h1>
<p class="lead">Callers may choose the ids of their requests, so they may repeat.</p>
${renderTable("Organizations with this request id", ["Calls"], rows, "")}`;
  return layOutForOperators(visit.site, "Find a call", main, words);
}

/** Where to look for a call that the search does not find. */
const otherPlaces = (site: Site) => html`the page <a href="${opsPath(site, "organizations")}">of its organization</a> \
counts calls over a limit (429), which are not kept one by one; <a href="${opsPath(site, "calls")}">calls with unknown \
keys</a> have those that no key explains; and the log of each API process has every call, with its \
<code>requestId</code>, for as long as you keep logs.`;

/** Maximum number of organizations that are listed for one request id. */
const CALLERS_MAX = 20;

const KINDS = { organizations: "Organization", brands: "Brand", products: "Product" } as const;

/** At most ten organizations, ten brands and ten products whose names contain the text, as rows of a table. */
async function findNamed({ ctx, site }: Visit, name: string): Promise<(Html | string)[][]> {
  if (name === "" || name.includes("\0")) return [];
  const rows: (Html | string)[][] = [];
  for (const collection of ["organizations", "brands", "products"] as const) {
    const { items } = await listCatalog(ctx, LISTS[collection], { name }, { after: "", limit: 10 });
    rows.push(...items.map((item) => [linkTo(site, collection, item.id, item.name), KINDS[collection]]));
  }
  return rows;
}
