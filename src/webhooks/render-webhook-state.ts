import { type Html, html } from "../pages/html.ts";
import { ENGLISH } from "../pages/locale.ts";
import { renderStatus } from "../pages/operator-frame.ts";
import type { WebhookDeliveryView } from "./api/webhook-deliveries.ts";
import type { WebhookView } from "./api/webhooks.ts";

/** Whether an endpoint is enabled, and whether its last attempts failed. The same for operators and partners. */
export function renderWebhookState(
  { disabledReason, failingSince }: { disabledReason: WebhookView["disabledReason"]; failingSince: unknown },
  { t } = ENGLISH,
): Html {
  if (disabledReason !== null)
    return html`<span class="badge bad">${t("webhooks.facts.disabled")}</span> \
${t(`webhooks.reasons.${disabledReason}`)}`;
  if (failingSince === null) return html`<span class="badge good">${t("webhooks.facts.enabled")}</span>`;
  return html`<span class="badge waiting">${t("webhooks.facts.failing")}</span>`;
}

/** The state of a delivery, and when its next attempt is due, or that an earlier delivery must end first. */
export function renderDeliveryState(
  { state, nextAttemptAt }: Pick<WebhookDeliveryView, "state" | "nextAttemptAt">,
  { t, markup, time } = ENGLISH,
): Html {
  const status = renderStatus(state, t(`webhooks.states.${state}`));
  if (nextAttemptAt !== null)
    return html`${status}<br>${markup("webhooks.nextAttempt", { time: time(nextAttemptAt) })}`;
  return state === "Pending" ? html`${status}<br>${markup("webhooks.afterEarlier")}` : status;
}
