import type { Bulkhead } from "../../core/callers/bulkhead.ts";
import { readConfirmed } from "../../core/commit/confirm-reads.ts";
import { nameVouchers, type VoucherName } from "../../core/voucher/db/vouchers.ts";
import { describeEvent } from "../../pages/event-words.ts";
import { type Html, html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import type { Locale } from "../../pages/locale.ts";
import { renderFacts, renderTable } from "../../pages/operator-frame.ts";
import type { DepsOf } from "../../platform/http/endpoint.ts";
import { layOutForPortal, linkVoucher, type PortalCaller, type PortalPage } from "../../portal/portal-frame.ts";
import type { DeliveriesResponse } from "../api/webhook-deliveries.ts";
import type { WebhookView } from "../api/webhooks.ts";
import { webhookVariables } from "../declared.ts";
import { readDeliveries } from "../deliveries.ts";
import { listWebhooks } from "../partner-webhooks.ts";
import { renderDeliveryState, renderWebhookState } from "../render-webhook-state.ts";

/** Maximum number of an endpoint's deliveries on the page. */
const DELIVERIES_MAX = 10;

type Endpoint = WebhookView &
  Pick<DeliveriesResponse, "deliveries" | "nextCursor"> & { names: ReadonlyMap<string, VoucherName> };

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
        const query = { cursor: undefined, limit: DELIVERIES_MAX };
        const { deliveries, nextCursor } = await readDeliveries(deps, caller.organizationId, webhook.id, query);
        const ids = deliveries.map(({ voucherId }) => voucherId);
        endpoints.push({ ...webhook, deliveries, nextCursor, names: await nameVouchers(deps.pool, ids) });
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
    ? html`<p class="notice">${t("webhooks.noEndpoints")} \
<a href="${site.basePath}/docs/webhooks">${t("webhooks.guide")}</a></p>`
    : endpoints.map((endpoint) => renderEndpoint(site, endpoint, caller.locale))
}`;
  return layOutForPortal(site, caller, t("webhooks.title"), main);
}

function renderEndpoint(
  site: Site,
  { id, url, description, disabledReason, failingSince, deliveries, nextCursor, names }: Endpoint,
  locale: Locale,
): Html {
  const { t, time } = locale;
  return html`<section aria-labelledby="${id}"><h2 id="${id}"><bdi>${description || url}</bdi></h2>
${renderFacts([
  ["URL", html`<code>${url}</code>`],
  [t("webhooks.facts.state"), renderWebhookState({ disabledReason, failingSince }, locale)],
  [t("webhooks.facts.failingSince"), failingSince === null ? null : time(failingSince)],
])}
${renderTable(
  t("webhooks.lastDeliveries", { name: description || url }),
  [
    t("portal.columns.event"),
    `${t("portal.facts.voucher")}, ${t("portal.columns.order")}`,
    ...(["happened", "state", "attempts", "lastAnswer"] as const).map((name) => t(`webhooks.columns.${name}`)),
  ],
  deliveries.map(({ eventType, voucherId, createdAt, state, nextAttemptAt, attempts, lastStatus, lastFailure }) => [
    describeEvent(eventType, locale).title,
    linkVoucher(site, voucherId, names.get(voucherId), locale),
    time(createdAt),
    renderDeliveryState({ state, nextAttemptAt }, locale),
    String(attempts),
    String(lastStatus ?? (lastFailure === null ? "" : t(`webhooks.failures.${lastFailure}`))),
  ]),
  t(disabledReason === null ? "webhooks.noDeliveries" : "webhooks.noDeliveriesNow"),
  { stacks: true },
)}
${nextCursor === null ? null : html`<p class="fine">${t("webhooks.newest", { count: DELIVERIES_MAX })}</p>`}
</section>
`;
}
