import type pg from "pg";
import { FAULTS_MAX, type Finders } from "../watch/facts.ts";
import { BACKLOG_MS } from "../watch/judge-data.ts";
import { measureWebhooks } from "./db/webhook-deliveries.ts";
import { selectFailingEndpoints } from "./db/webhook-endpoints.ts";
import { FAILURES_SHOWN } from "./webhook-limits.ts";

/** Transactions in the outbox that are counted: more than the limit in the table of faults. */
const OUTBOX_COUNTED_MAX = 2_000;

/** Reads endpoints that fail, or that were disabled for it, and what waits to be sent. */
export async function readWebhookFinders({ pool }: { pool: pg.Pool }): Promise<Finders> {
  const endpoints = await selectFailingEndpoints(pool, { failures: FAILURES_SHOWN, limit: FAULTS_MAX });
  return makeFinders(endpoints, await measureWebhooks(pool, OUTBOX_COUNTED_MAX));
}

/** What finds the faults of webhooks in what was read. */
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
