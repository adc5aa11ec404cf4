import type { Bulkhead } from "../../core/callers/bulkhead.ts";
import { readConfirmed } from "../../core/commit/confirm-reads.ts";
import { describeEvent } from "../../pages/event-words.ts";
import { type Html, html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import type { Locale } from "../../pages/locale.ts";
import { renderFacts, renderStatus, renderTable } from "../../pages/operator-frame.ts";
import type { DepsOf } from "../../platform/http/endpoint.ts";
import { layOutForPortal, type PortalCaller, type PortalPage } from "../../portal/portal-frame.ts";
import type { DeliveriesResponse } from "../api/webhook-deliveries.ts";
import type { WebhookView } from "../api/webhooks.ts";
import { webhookVariables } from "../declared.ts";
import { readDeliveries } from "../deliveries.ts";
import { listWebhooks } from "../partner-webhooks.ts";

/** An endpoint with its last deliveries. */
type Endpoint = WebhookView & Pick<DeliveriesResponse, "deliveries">;

type Deps = DepsOf<typeof readDeliveries> &
  DepsOf<typeof readConfirmed> & { portalReads: Bulkhead<"organization">; config: Site };

/** The organization's webhook endpoints. For keys that may manage them. */
export const webhooksPage: PortalPage<Deps> = {
  path: "/webhooks",
  label: ({ t }) => t("webhooks.title"),
  isOpenTo: ({ config }, scopes) => scopes.has("voucher.webhook") && webhookVariables.of(config).secret !== null,
  render(deps, caller) {
    const read = async () => {
      const endpoints: Endpoint[] = [];
      for (const webhook of (await listWebhooks(deps, deps.pool, caller.organizationId)).webhooks) {
        const query = { cursor: undefined, limit: 10 };
        endpoints.push({ ...webhook, ...(await readDeliveries(deps, caller.organizationId, webhook.id, query)) });
      }
      return renderWebhooks(deps.config, caller, endpoints);
    };
    return readConfirmed(deps, () => deps.portalReads(caller, read));
  },
};

function renderWebhooks(site: Site, caller: PortalCaller, endpoints: readonly Endpoint[]): Html {
  const { t } = caller.locale;
  const main = html`<h1>${t("webhooks.endpoints")}</h1>
${
  endpoints.length === 0
    ? html`<p class="notice">${t("portal.none")}\
</p>`
    : endpoints.map((endpoint) => renderEndpoint(endpoint, caller.locale))
}`;
  return layOutForPortal(site, caller, t("webhooks.title"), main);
}

function renderEndpoint(
  { id, url, description, disabledReason, failingSince, deliveries }: Endpoint,
  locale: Locale,
): Html {
  const { t, time } = locale;
  return html`<section aria-labelledby="${id}"><h2 id="${id}"><bdi>${description || url}</bdi></h2>
${renderFacts([
  ["URL", html`<code>${url}</code>`],
  [
    t("webhooks.facts.state"),
    disabledReason === null
      ? t("webhooks.facts.enabled")
      : `${t("webhooks.facts.disabled")} ${t(`webhooks.reasons.${disabledReason}`)}`,
  ],
  [t("webhooks.facts.failingSince"), failingSince === null ? null : time(failingSince)],
])}
${renderTable(
  t("webhooks.lastDeliveries", { name: description || url }),
  (["event", "happened", "state", "attempts", "lastAnswer"] as const).map((name) => t(`webhooks.columns.${name}`)),
  deliveries.map(({ eventType, createdAt, state, attempts, lastStatus, lastFailure }) => [
    describeEvent(eventType, locale).title,
    time(createdAt),
    renderStatus(state, t(`webhooks.states.${state}`)),
    String(attempts),
    String(lastStatus ?? (lastFailure === null ? "" : t(`webhooks.failures.${lastFailure}`))),
  ]),
  t("portal.none"),
  { stacks: true },
)}
</section>
`;
}
