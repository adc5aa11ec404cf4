import type { DeliveriesResponse } from "../../contract/webhook-deliveries.ts";
import type { WebhookView } from "../../contract/webhooks.ts";
import { renderFacts, renderStatus, renderTable } from "../ops/operator-frame.ts";
import { REASONS } from "../ops/webhook-page.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { renderTime } from "../pages/time.ts";
import { layOutForPortal, type PortalCaller } from "./portal-frame.ts";

/** Deliveries of each endpoint on the page. */
export const DELIVERIES_SHOWN = 10;

/** The organization's webhook endpoints with their last deliveries. */
export function renderWebhooksPage(
  site: Site,
  caller: PortalCaller,
  endpoints: readonly { webhook: WebhookView; deliveries: DeliveriesResponse["deliveries"] }[],
): Html {
  return layOutForPortal(site, caller, {
    title: "Webhooks",
    main: html`<h1>Webhook endpoints</h1>
${endpoints.length === 0 ? html`<p class="notice">There are none.</p>` : null}
${endpoints.map(
  ({ webhook, deliveries }) => html`<section aria-labelledby="${webhook.id}">
<h2 id="${webhook.id}"><bdi>${webhook.description || webhook.url}</bdi></h2>
${renderFacts([
  ["URL", html`<code>${webhook.url}</code>`],
  ["State", webhook.disabledReason === null ? "Enabled" : `Disabled. ${REASONS[webhook.disabledReason]}`],
  ["Failing since", webhook.failingSince === null ? null : renderTime(webhook.failingSince)],
])}
${renderTable(
  `Last deliveries to ${webhook.description || webhook.url}`,
  ["Event", "Happened", "State", "Attempts", "Last answer"],
  deliveries.map(({ eventType, createdAt, state, attempts, lastStatus, lastFailure }) => [
    eventType,
    renderTime(createdAt),
    renderStatus(state),
    String(attempts),
    String(lastStatus ?? lastFailure?.replaceAll("_", " ") ?? ""),
  ]),
  html`Nothing was sent in the last 30 days.`,
)}
</section>
`,
)}`,
  });
}
