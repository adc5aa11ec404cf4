import type pg from "pg";
import { FAULTS_MAX, type FindingsOfWing } from "../watch/facts.ts";
import { selectFailingEndpoints } from "./db/webhook-endpoints.ts";
import { FAILURES_SHOWN } from "./webhook-limits.ts";

/** Finds failing endpoints, and endpoints that were disabled because they failed. */
export async function readWebhookFindings({ pool }: { pool: pg.Pool }): Promise<FindingsOfWing> {
  const endpoints = await selectFailingEndpoints(pool, { failures: FAILURES_SHOWN, limit: FAULTS_MAX });
  const find = (what: string, isEnabled: boolean) =>
    endpoints
      .filter(({ enabled }) => enabled === isEnabled)
      .map(({ id, url, organization, since }) => {
        return { what, subject: `${organization}: ${new URL(url).host}`, page: ["webhooks", id], since };
      });
  return {
    VouchersWebhooksFail: find("A webhook endpoint fails", true),
    VouchersWebhookEndpointDisabled: find("A webhook endpoint was disabled", false),
  };
}
