import { isAllowed } from "../../acts/operator-role.ts";
import { readLineage } from "../../acts/read-lineage.ts";
import { sayEmpty } from "../../console/actions/say-empty.ts";
import { LIST_MAX, lastId, renderList } from "../../console/list-pages.ts";
import type { Page, Visit } from "../../console/visit.ts";
import { nameVouchers, type VoucherName } from "../../core/voucher/db/vouchers.ts";
import { type Html, html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import {
  COUNT,
  layOutForOperators,
  linkActions,
  linkNext,
  linkTo,
  NO_FURTHER,
  opsPath,
  renderFacts,
  renderFigures,
  renderSection,
  renderTable,
  renderTrail,
} from "../../pages/operator-frame.ts";
import { renderTime } from "../../pages/time.ts";
import { AppError } from "../../platform/api/errors.ts";
import { createAnyWebhook } from "../acts.ts";
import { readWebhookPage } from "../any-webhook.ts";
import {
  DELIVERIES_KEPT_DAYS,
  DELIVERY_STATES,
  type DeliveryState,
  type WebhookDeliveryView,
} from "../api/webhook-deliveries.ts";
import { listWebhookEndpoints, selectWebhookEndpoints, type WebhookRow } from "../db/webhook-endpoints.ts";
import { renderDeliveryState, renderWebhookState } from "../render-webhook-state.ts";

/** The page of an endpoint: its state and its deliveries, but not the secret, which the service does not store. */
export const webhookPage: Page = async ({ ctx, site, operator, id, query, recordVisit }) => {
  const state = DELIVERY_STATES.find((one) => one === query("state"));
  if (query("state") !== "" && state === undefined) {
    throw new AppError("invalid_request", "state must be a state of deliveries.");
  }
  const cursor = query("cursor") || undefined;
  const { endpoint, deliveries, nextCursor, pending, morePending } = await readWebhookPage(ctx, id, { state, cursor });
  await recordVisit("page webhook", { type: "WebhookEndpoint", id });
  const lineage = await readLineage(ctx, "webhooks", id);
  const path = opsPath(site, "webhooks", id);
  const ids = deliveries.map(({ voucherId }) => voucherId);
  const filter = state === undefined ? "" : `state=${state}&`;
  const filters = DELIVERY_STATES.map((each) =>
    each === state ? html`, <strong>${each}</strong>` : html`, <a href="${path}?state=${each}">${each}</a>`,
  );
  return layOutForOperators(
    site,
    `Webhook endpoint of ${lineage.organizationName}`,
    html`${renderTrail(site, lineage)}<h1>Webhook endpoint</h1>
${renderFigures(["Waiting deliveries", `${morePending ? "more than " : ""}${COUNT.format(pending)}`])}
${renderEndpointFacts(site, operator, endpoint)}
${linkActions(
  site,
  ["webhooks", id],
  ["test", "Test"],
  endpoint.disabledReason === null ? ["disable", "Disable"] : ["enable", "Enable"],
  ["replay", "Send deliveries again"],
  ["rotate", "New secret"],
)}
${renderSection(
  "deliveries",
  cursor === undefined ? "Last deliveries" : "Earlier deliveries",
  html`<p>Deliveries of the \
last ${DELIVERIES_KEPT_DAYS} days: ${
    state === undefined
      ? html`<strong>all</strong>`
      : html`<a \
href="${path}">all</a>`
  }${filters}.</p>\n`,
  renderDeliveries(site, deliveries, await nameVouchers(ctx.pool, ids), sayNone(state, cursor, pending)),
  linkNext(nextCursor && `${path}?${filter}cursor=${nextCursor}`, "Earlier deliveries"),
)}`,
  );
};

/** The address of an endpoint. Only an admin sees its query, because it may contain a token of the receiver. */
function addressFor({ role }: Visit["operator"], { url }: Pick<WebhookRow, "url">): string {
  return isAllowed(role, "admin") ? url : url.replace(/\?.*/s, "?…");
}

function renderEndpointFacts(site: Site, operator: Visit["operator"], endpoint: WebhookRow): Html {
  const { disabledAt, failingSince, previousSecretUntil } = endpoint;
  return renderFacts([
    ["Id", html`<code>${endpoint.id}</code>`],
    ["Organization", linkTo(site, "organizations", endpoint.organizationId)],
    ["URL", html`<code>${addressFor(operator, endpoint)}</code>`],
    ["Description", endpoint.description || null],
    ["Events", endpoint.eventTypes.length === 0 ? "all" : endpoint.eventTypes.join(", ")],
    ["State", renderWebhookState(endpoint)],
    ["Disabled", disabledAt === null ? null : renderTime(disabledAt)],
    ["Failing since", failingSince === null ? null : renderTime(failingSince)],
    ["Previous secret signs until", previousSecretUntil === null ? null : renderTime(previousSecretUntil)],
    ["Created", renderTime(endpoint.createdAt)],
  ]);
}

function sayNone(state: DeliveryState | undefined, cursor: string | undefined, pending: number): string {
  if (cursor !== undefined) return NO_FURTHER;
  if (state === undefined)
    return "No deliveries yet. Each event of the organization's vouchers that is chosen here is sent.";
  const none = `No delivery is ${state}.`;
  if (state !== "Failed" || pending === 0) return none;
  return `${none} None was given up: those that wait are tried again while the endpoint is enabled.`;
}

function renderDeliveries(
  site: Site,
  deliveries: readonly WebhookDeliveryView[],
  names: ReadonlyMap<string, VoucherName>,
  empty: string,
): Html {
  return renderTable(
    "Deliveries",
    ["Event", "Happened", "State", "Attempts", "Last attempt"],
    deliveries.map((delivery) => [
      html`${delivery.eventType}${delivery.sequence === null ? "" : ` ${delivery.sequence}`}\
<br>${linkTo(site, "vouchers", delivery.voucherId)}${renderOrder(names.get(delivery.voucherId))}`,
      renderTime(delivery.createdAt),
      renderDeliveryState(delivery),
      String(delivery.attempts),
      describeAttempt(delivery),
    ]),
    empty,
    { stacks: true },
  );
}

const renderOrder = (name: VoucherName | undefined) =>
  name?.externalRef ? html`<br>Order <bdi>${name.externalRef}</bdi>` : null;

/** The list of the endpoints of all organizations. */
export const webhooksPage: Page = async ({ ctx, site, operator, query }) => {
  const endpoints = await listWebhookEndpoints(ctx.pool, { after: query("after"), limit: LIST_MAX });
  const next = lastId(endpoints);
  return renderList(
    site,
    "Webhooks",
    null,
    ["Endpoint", "Organization", "State"],
    endpoints.map((endpoint) => [
      linkTo(site, "webhooks", endpoint.id, addressFor(operator, endpoint)),
      linkTo(site, "organizations", endpoint.organizationId, endpoint.organization),
      renderWebhookState(endpoint),
    ]),
    next && `?after=${encodeURIComponent(next)}`,
    query("after") === ""
      ? html`No partner has a webhook endpoint yet. One is created on the page of its \
<a href="${opsPath(site, "organizations")}">organization</a>.`
      : undefined,
  );
};

/** The section with the endpoints on an organization's page. */
export async function renderWebhooks({ ctx, site, operator, id }: Visit): Promise<Html> {
  const endpoints = await selectWebhookEndpoints(ctx.pool, id);
  const table = renderTable(
    "Webhook endpoints",
    ["Endpoint", "URL", "Description", "State"],
    endpoints.map((endpoint) => [
      linkTo(site, "webhooks", endpoint.id),
      html`<bdi>${addressFor(operator, endpoint)}</bdi>`,
      html`<bdi>${endpoint.description}</bdi>`,
      renderWebhookState(endpoint),
    ]),
    sayEmpty(site, "The organization has no webhook endpoints.", createAnyWebhook, id),
    { stacks: true },
  );
  const another = ["webhooks/new", "New webhook endpoint"] as const;
  const actions = endpoints.length === 0 ? null : linkActions(site, ["organizations", id], another);
  return renderSection("webhooks", "Webhook endpoints", actions, table);
}

/** The result of the last attempt: its status, the reason for its failure, or both. Empty before the first attempt. */
function describeAttempt({ lastStatus, lastFailure }: WebhookDeliveryView): string {
  const words = lastFailure === null || lastFailure === "status" ? [] : [lastFailure.replaceAll("_", " ")];
  return [...(lastStatus === null ? [] : [String(lastStatus)]), ...words].join(", ");
}
