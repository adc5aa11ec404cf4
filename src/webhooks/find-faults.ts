import { FAULTS_MAX, type WingFaults } from "../watch/facts.ts";
import { selectFailingEndpoints } from "./db/webhook-endpoints.ts";
import { FAILURES_SHOWN } from "./webhook-limits.ts";

/** Failing endpoints, and endpoints that were disabled because of failures. An operator must tell the organizations. */
export const webhookFaults: WingFaults<"VouchersWebhooksFail"> = {
  severities: { VouchersWebhooksFail: "amber" },
  async find({ pool }) {
    const endpoints = await selectFailingEndpoints(pool, { failures: FAILURES_SHOWN, limit: FAULTS_MAX });
    return {
      VouchersWebhooksFail: endpoints.map(({ id, url, organization, since, enabled }) => ({
        what: `A webhook endpoint ${enabled ? "fails" : "was disabled"}`,
        subject: `${organization}: ${new URL(url).host}`,
        page: ["webhooks", id],
        since,
      })),
    };
  },
};
