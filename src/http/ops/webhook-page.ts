import { DELIVERIES_KEPT_DAYS, DELIVERY_STATES, type WebhookDeliveryView } from "../../contract/webhook-deliveries.ts";
import type { WebhookDisabledReason } from "../../contract/webhooks.ts";
import type { WebhookRow } from "../../db/webhook-endpoints.ts";
import type { WebhookPage, WebhookSummary } from "../../services/webhooks/read-webhook.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { renderTime } from "../pages/time.ts";
import { linkActions, type OperatedSite } from "./action-links.ts";
import {
  COUNT,
  layOutForOperators,
  linkOrganization,
  linkVoucher,
  opsPath,
  renderFacts,
  renderStatus,
  renderTable,
} from "./operator-frame.ts";

/** Why an endpoint is disabled, as a sentence. */
export const REASONS: Record<WebhookDisabledReason, string> = {
  partner: "The partner disabled it.",
  operator: "An operator disabled it; only an operator can enable it.",
  gone: "It answered 410. The partner can enable it again.",
  failing: "It had nothing but failures for five days. The partner can enable it again.",
};

/** The page of an endpoint: its state, the number of waiting deliveries, and a list of deliveries. The secret is not stored. */
export function renderWebhookPage(site: OperatedSite, summary: WebhookSummary, page: WebhookPage): Html {
  const { endpoint, deliveries, nextCursor, pending, morePending } = summary;
  const path = opsPath(site, "webhooks", endpoint.id);
  const filter = page.state === undefined ? "" : `state=${page.state}&`;
  return layOutForOperators(
    site,
    `Webhook endpoint ${endpoint.id}`,
    html`<h1>Webhook endpoint</h1>
${renderFacts([
  ["Id", html`<code>${endpoint.id}</code>`],
  ["Organization", linkOrganization(site, endpoint.organizationId)],
  ["URL", html`<code>${endpoint.url}</code>`],
  ["Description", endpoint.description || null],
  ["Events", endpoint.eventTypes.length === 0 ? "all" : endpoint.eventTypes.join(", ")],
  [
    "State",
    html`${renderEndpointState(endpoint)}${endpoint.disabledReason === null ? null : html` ${REASONS[endpoint.disabledReason]}`}`,
  ],
  ["Disabled", endpoint.disabledAt === null ? null : renderTime(endpoint.disabledAt)],
  ["Failing since", endpoint.failingSince === null ? null : renderTime(endpoint.failingSince)],
  [
    "Previous secret signs until",
    endpoint.previousSecretUntil === null ? null : renderTime(endpoint.previousSecretUntil),
  ],
  ["Created", renderTime(endpoint.createdAt)],
  [
    "Waiting",
    `${morePending ? "more than " : ""}${COUNT.format(pending)} ${pending === 1 ? "delivery" : "deliveries"}`,
  ],
])}
${linkActions(
  site,
  ["webhooks", endpoint.id],
  ["test", "Test"],
  endpoint.disabledReason === null ? ["disable", "Disable"] : ["enable", "Enable"],
  ["replay", "Send deliveries again"],
)}
<section aria-labelledby="deliveries">
<h2 id="deliveries">${page.cursor === undefined ? "Last deliveries" : "Earlier deliveries"}</h2>
<p>Deliveries of the last ${DELIVERIES_KEPT_DAYS} days: ${page.state === undefined ? html`<strong>all</strong>` : html`<a href="${path}">all</a>`}${DELIVERY_STATES.map(
      (state) =>
        state === page.state
          ? html`, <strong>${state}</strong>`
          : html`, <a href="${path}?state=${state}">${state}</a>`,
    )}.</p>
${renderTable(
  "Deliveries",
  ["Event", "Happened", "State", "Attempts", "Last attempt"],
  deliveries.map((delivery) => [
    html`${delivery.eventType}${delivery.sequence === null ? "" : ` ${delivery.sequence}`}<br>${linkVoucher(site, delivery.voucherId)}`,
    renderTime(delivery.createdAt),
    html`${renderStatus(delivery.state)}${renderNext(delivery)}`,
    String(delivery.attempts),
    describeAttempt(delivery),
  ]),
)}
${nextCursor === null ? null : html`<p><a rel="next" href="${path}?${filter}cursor=${nextCursor}">Earlier deliveries</a></p>`}
</section>`,
  );
}

/** The table of endpoints on an organization's page. */
export function renderWebhooks(site: Site, endpoints: readonly WebhookRow[]): Html {
  return renderTable(
    "Webhook endpoints",
    ["Endpoint", "URL", "Description", "State"],
    endpoints.map((endpoint) => [
      html`<a href="${opsPath(site, "webhooks", endpoint.id)}"><code>${endpoint.id}</code></a>`,
      endpoint.url,
      endpoint.description,
      renderEndpointState(endpoint),
    ]),
  );
}

export function renderEndpointState({
  disabledReason,
  failingSince,
}: Pick<WebhookRow, "disabledReason" | "failingSince">): Html {
  if (disabledReason !== null) return html`<span class="badge bad">Disabled</span>`;
  return failingSince === null
    ? html`<span class="badge good">Enabled</span>`
    : html`<span class="badge waiting">Enabled, failing</span>`;
}

/** The result of the last attempt: its status, the reason of its failure, or both. Empty before the first attempt. */
function describeAttempt({ lastStatus, lastFailure }: WebhookDeliveryView): string {
  const words = lastFailure === null || lastFailure === "status" ? [] : [lastFailure.replaceAll("_", " ")];
  return [...(lastStatus === null ? [] : [String(lastStatus)]), ...words].join(", ");
}

/** When the next attempt is due, or that an earlier delivery must end first. Null for a finished delivery. */
function renderNext({ state, nextAttemptAt }: WebhookDeliveryView): Html | null {
  if (nextAttemptAt !== null) return html`<br>next ${renderTime(nextAttemptAt)}`;
  return state === "Pending" ? html`<br>after the voucher's earlier event` : null;
}
