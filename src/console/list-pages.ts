import { type ActingBy, selectChanges } from "../acts/db/audit-entries.ts";
import { LISTS } from "../acts/db/lists.ts";
import { countOperators } from "../acts/db/operators.ts";
import { listCatalog } from "../acts/list-catalog.ts";
import { createOperator } from "../acts/operator/create.ts";
import { OPERATOR_ROLES } from "../acts/operator-role.ts";
import { createOrganization } from "../acts/org/create.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import {
  COUNT,
  layOutForOperators,
  linkActions,
  linkNext,
  linkTo,
  NO_FURTHER,
  opsPath,
  renderFigures,
  renderSandbox,
  renderTable,
} from "../pages/operator-frame.ts";
import { MINUTES, renderTime } from "../pages/time.ts";
import { csvCell } from "../platform/text.ts";
import { sayEmpty } from "./actions/say-empty.ts";
import { renderState } from "./render-state.ts";
import type { Page, Pages, Visit } from "./visit.ts";

/** Maximum number of entries on a page of a list. */
export const LIST_MAX = 100;

/** A page of a list. `next` is the query of the following page, or null. A first page without rows shows `empty`. */
export function renderList(
  site: Site,
  title: string,
  top: Html | null,
  columns: string[],
  rows: (Html | string)[][],
  next: string | null,
  empty: Html | string = NO_FURTHER,
): Html {
  const table = renderTable(title, columns, rows, empty, { stacks: true });
  return layOutForOperators(site, title, html`<h1>${title}</h1>${top}${table}${linkNext(next)}`);
}

/** The id of the last entry of a full page. Null if the page is not full. */
export function lastId<Id>(found: readonly { id: Id }[]): Id | null {
  return found[LIST_MAX - 1]?.id ?? null;
}

/** The path segment of the pages of an audited entity, by the entity's type. */
const COLLECTIONS: Record<string, string> = {
  Organization: "organizations",
  Brand: "brands",
  Product: "products",
  Batch: "batches",
  VoucherInstance: "vouchers",
  WebhookEndpoint: "webhooks",
  ReferrerContract: "contracts",
  Queue: "queues",
};

/** How the acting person or program was identified. */
const KNOWN_BY: Record<ActingBy, string> = {
  operator: "named operator",
  jwt: "signed in by the proxy",
  shared: "shared token, name not checked",
  command: "command line",
  key: "API key",
};

const showOrganizations: Page = async ({ ctx, site, query }) => {
  const page = { after: query("after"), limit: LIST_MAX };
  const { items, nextCursor } = await listCatalog(ctx, LISTS.organizations, {}, page);
  return renderList(
    site,
    "Organizations",
    linkActions(site, ["organizations"], ["new", "New organization"]),
    ["Organization", "Created"],
    items.map(({ id, name, sandbox, createdAt }) => [
      html`${linkTo(site, "organizations", id, name)}${renderSandbox(sandbox)}`,
      renderTime(createdAt, MINUTES),
    ]),
    nextCursor && `?after=${encodeURIComponent(nextCursor)}`,
    page.after === "" ? sayEmpty(site, "There are no organizations yet.", createOrganization) : undefined,
  );
};

/** The filter of the audit: one entity or all, and one user or all. Empty texts stand for all. */
const filterOf = ({ entered }: Pick<Visit, "entered">) => ({
  entity: entered("entity").trim(),
  user: entered("user").trim(),
});

const readChanges = (visit: Visit, before: number, limit: number) => {
  const { entity, user } = filterOf(visit);
  return selectChanges(visit.ctx.pool, { before, limit, entityId: entity || null, user: user || null });
};

/** The newest changes. A filter is sent with POST, because text that a person types must not be part of a URL. */
export const showAudit: Page = async (visit) => {
  const { site, number } = visit;
  const asked = number("before", 1, Number.MAX_SAFE_INTEGER);
  const changes = await readChanges(visit, asked ?? Number.MAX_SAFE_INTEGER, LIST_MAX);
  const { entity, user } = filterOf(visit);
  const isFiltered = entity !== "" || user !== "";
  const next = isFiltered ? null : lastId(changes);
  const path = opsPath(site, "audit");
  return renderList(
    site,
    "Audit",
    html`<p class="lead">What was changed, newest first. <code>voucherctl audit list</code> shows the states before \
and after, and views of pages.</p>
<form action="${path}" method="post"><div class="row">\
<div class="row"><label for="entity">Id</label>\
<input id="entity" name="entity" value="${entity}" placeholder="org_…"></div>\
<div class="row"><label for="user">By</label>\
<input id="user" name="user" value="${user}" placeholder="Name"></div>\
<button type="submit">Show</button>\
<button type="submit" formaction="${path}.csv">Save as CSV</button></div></form>
${isFiltered ? html`<p>At most ${LIST_MAX} of these changes. <a href="${path}">All changes</a></p>` : null}`,
    ["Time", "By", "Change", "Id"],
    changes.map(({ at, command, entityType, entityId, osUser, host, by }) => {
      const collection = COLLECTIONS[entityType];
      const shown = collection === undefined ? renderId(entityType, entityId) : linkTo(site, collection, entityId);
      const known = by === null ? null : html` <span class="fine">(${KNOWN_BY[by]})</span>`;
      return [renderTime(at), html`<bdi>${osUser}</bdi>@${host}${known}`, command, shown];
    }),
    next === null ? null : `?before=${next}`,
    isFiltered
      ? "No change has this id and this name."
      : asked === null
        ? html`Nothing was changed yet. Each change appears here, whether it is made on these pages or with \
<code>voucherctl</code>.`
        : undefined,
  );
};

/** Shows no id for a link: its id is the hash of a secret code, and people do not recognize it. */
const renderId = (entityType: string, entityId: string) =>
  entityType === "ReferralLink" ? html`` : html`<code>${entityId}</code>`;

/** Maximum number of changes in a CSV file. */
const FILE_MAX = 10_000;

/** The newest changes as a CSV file, with the filters of the page. */
export async function readAuditFile(visit: Visit): Promise<string> {
  const changes = await readChanges(visit, Number.MAX_SAFE_INTEGER, FILE_MAX);
  const rows = changes.map(({ at, osUser, host, by, command, entityType, entityId }) =>
    [at.toISOString(), osUser, host, by, command, entityType, entityId].map(csvCell),
  );
  const head = ["time", "user", "host", "knownBy", "command", "entityType", "entityId"].map(csvCell);
  return [head, ...rows].map((cells) => `${cells.join(",")}\r\n`).join("");
}

/** The named operators: for each, the role, the name for signing in, and the expiry time. Shows no token. */
const showOperators: Page = async ({ ctx, site, query }) => {
  const page = { after: query("after"), limit: LIST_MAX };
  const { items, nextCursor } = await listCatalog(ctx, LISTS.operators, {}, page);
  const counts = new Map((await countOperators(ctx.pool)).map(({ role, operators }) => [role, operators]));
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const figures = renderFigures(
    ["Named operators", COUNT.format(total)],
    ...OPERATOR_ROLES.map((role) => [`As ${role}`, COUNT.format(counts.get(role) ?? 0)] as const),
  );
  return renderList(
    site,
    "Operators",
    html`<p class="lead">Operators who sign in with a name and a token of their own. Those whom a proxy signs in, and \
users of the shared token, are not listed.</p>${figures}${linkActions(site, ["operators"], ["new", "New operator"])}`,
    ["Operator", "Role", "State", "Id"],
    items.map(({ id, name, role, state, expiresAt, revokedAt, oldTokensUntil }) => [
      html`<bdi>${name}</bdi>`,
      role,
      html`${renderState({ state, revokedAt, expiresAt })}${
        oldTokensUntil === null || state !== "Active"
          ? null
          : html`<br>an old token works until ${renderTime(oldTokensUntil, MINUTES)}`
      }`,
      html`<code>${id}</code>${
        state === "Active" ? linkActions(site, ["operators", id], ["rotate", "Rotate"], ["revoke", "Revoke"]) : null
      }`,
    ]),
    nextCursor && `?after=${encodeURIComponent(nextCursor)}`,
    page.after === "" ? sayEmpty(site, "There are no named operators yet.", createOperator) : undefined,
  );
};

/** The lists of organizations, changes and operators. */
export const LIST_PAGES: Pages = {
  "/organizations": ["viewer", showOrganizations],
  "/audit": ["viewer", showAudit],
  "/operators": ["viewer", showOperators],
};
