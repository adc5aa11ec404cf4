import type { AuditedChange } from "../../db/audit-entries.ts";
import type { ListItem } from "../../db/lists.ts";
import type { ListedEndpoint } from "../../db/webhook-endpoints.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { MINUTES, renderTime } from "../pages/time.ts";
import { linkActions, type OperatedSite } from "./action-links.ts";
import { layOutForOperators, linkOrganization, opsPath, renderSandbox, renderTable } from "./operator-frame.ts";
import { renderEndpointState } from "./webhook-page.ts";

/** A page of a list; `next` is the query of the page that follows, or null. */
function renderList(
  site: Site,
  title: string,
  top: Html | null,
  columns: string[],
  rows: (Html | string)[][],
  next: string | null,
): Html {
  const more = next === null ? null : html`<p><a rel="next" href="?${next}">More</a></p>`;
  return layOutForOperators(site, title, html`<h1>${title}</h1>${top}${renderTable(title, columns, rows)}${more}`);
}

export function renderOrganizationsPage(
  site: OperatedSite,
  { items, nextCursor }: { items: readonly ListItem<"organizations">[]; nextCursor: string | null },
): Html {
  return renderList(
    site,
    "Organizations",
    linkActions(site, ["organizations"], ["new", "New organization"]),
    ["Organization", "Created"],
    items.map(({ id, name, sandbox, createdAt }) => [
      html`${linkOrganization(site, id, html`<bdi>${name}</bdi>`)}${renderSandbox(sandbox)}`,
      renderTime(createdAt, MINUTES),
    ]),
    nextCursor === null ? null : `after=${encodeURIComponent(nextCursor)}`,
  );
}

export function renderEndpointsPage(site: Site, endpoints: readonly ListedEndpoint[], next: string | null): Html {
  return renderList(
    site,
    "Webhooks",
    null,
    ["Target", "Organization", "State"],
    endpoints.map((endpoint) => [
      html`<a href="${opsPath(site, "webhooks", endpoint.id)}"><bdi>${endpoint.url}</bdi></a>`,
      linkOrganization(site, endpoint.organizationId, html`<bdi>${endpoint.organization}</bdi>`),
      renderEndpointState(endpoint),
    ]),
    next && `after=${encodeURIComponent(next)}`,
  );
}

/** The folder of the pages of an audited entity, by its type. */
const COLLECTIONS: Record<string, string> = {
  Organization: "organizations",
  Brand: "brands",
  Product: "products",
  Batch: "batches",
  VoucherInstance: "vouchers",
  WebhookEndpoint: "webhooks",
  ReferrerContract: "contracts",
};

export function renderAuditPage(site: Site, changes: readonly AuditedChange[], next: number | null): Html {
  return renderList(
    site,
    "Audit",
    html`<p class="lead">What was changed, newest first. <code>voucherctl audit list</code> shows the states before and after, and views of pages.</p>`,
    ["Time", "Command", "Entity", "By"],
    changes.map(({ at, command, entityType, entityId, osUser, host }) => {
      const collection = COLLECTIONS[entityType];
      const id = html`<code>${entityId}</code>`;
      return [
        renderTime(at),
        command,
        collection === undefined ? id : html`<a href="${opsPath(site, collection, entityId)}">${id}</a>`,
        `${osUser}@${host}`,
      ];
    }),
    next === null ? null : `before=${next}`,
  );
}
