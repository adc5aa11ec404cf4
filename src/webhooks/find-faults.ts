import { FAULTS_MAX, type WingFaults } from "../watch/facts.ts";
import { selectFailingEndpoints } from "./db/webhook-endpoints.ts";
import { FAILURES_SHOWN } from "./webhook-limits.ts";

/** Failing endpoints, and endpoints that were disabled because of failures. */
export const webhookFaults: WingFaults<"VouchersWebhooksFail" | "VouchersWebhookEndpointDisabled"> = {
  severities: { VouchersWebhooksFail: "amber", VouchersWebhookEndpointDisabled: "amber" },
  async find({ pool }) {
    const endpoints = await selectFailingEndpoints(pool, { failures: FAILURES_SHOWN, limit: FAULTS_MAX });
    const found = (what: string, isEnabled: boolean) =>
      endpoints
        .filter(({ enabled }) => enabled === isEnabled)
        .map(({ id, url, organization, since }) => {
          return { what, subject: `${organization}: ${new URL(url).host}`, page: ["webhooks", id], since };
        });
    return {
      VouchersWebhooksFail: found("A webhook endpoint fails", true),
      VouchersWebhookEndpointDisabled: found("A webhook endpoint was disabled", false),
    };
  },
};
