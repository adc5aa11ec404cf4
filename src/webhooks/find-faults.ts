import type pg from "pg";
import { FAULTS_MAX, type Finders } from "../watch/facts.ts";
import { BACKLOG_MS } from "../watch/judge-data.ts";
import { measureWebhooks } from "./db/webhook-deliveries.ts";
import { selectFailingEndpoints } from "./db/webhook-endpoints.ts";
import { FAILURES_SHOWN } from "./webhook-limits.ts";

/** The outbox is counted up to this number of transactions, which exceeds the limit in the table of faults. */
const OUTBOX_COUNTED_MAX = 2_000;

/** Reads failing endpoints, endpoints that were disabled because they failed, and the deliveries that wait. */
export async function readWebhookFinders({ pool }: { pool: pg.Pool }): Promise<Finders> {
  const endpoints = await selectFailingEndpoints(pool, { failures: FAILURES_SHOWN, limit: FAULTS_MAX });
  return makeFinders(endpoints, await measureWebhooks(pool, OUTBOX_COUNTED_MAX));
}

/** Makes functions that find the faults of webhooks in the data that was read. */
export function makeFinders(
  endpoints: Awaited<ReturnType<typeof selectFailingEndpoints>>,
  { outbox, oldestDueMs }: Pick<Awaited<ReturnType<typeof measureWebhooks>>, "outbox" | "oldestDueMs">,
): Finders {
  const find = (what: string, isEnabled: boolean) => () =>
    endpoints
      .filter(({ enabled }) => enabled === isEnabled)
      .map(({ id, url, organization, since }) => {
        return { what, subject: `${organization}: ${new URL(url).host}`, page: ["webhooks", id], since };
      });
  const findBacklog = (what: string, waiting: number) => (limit: number) =>
    waiting > limit ? [{ what, subject: "webhook", confirmMs: BACKLOG_MS }] : [];
  return {
    VouchersWebhooksLate: findBacklog("Webhooks are late", oldestDueMs / 1_000),
    VouchersWebhooksFail: find("A webhook endpoint fails", true),
    VouchersWebhookOutboxGrows: findBacklog("Webhooks are not prepared", outbox),
    VouchersWebhookEndpointDisabled: find("A webhook endpoint was disabled", false),
  };
}
