import type { ConsolePart } from "../console/console-part.ts";
import type { WingBacklog } from "../core/metrics/open-metrics.ts";
import { FairSlots } from "../platform/batching/fair-slots.ts";
import type { Lifetime } from "../platform/lifetime.ts";
import type { QueueResources } from "../platform/queues/open-queue.ts";
import { describeWebhooks } from "./api/describe-webhooks.ts";
import { WEBHOOK_FORMS, type WebhookActionDeps } from "./console/webhook-forms.ts";
import { renderWebhooks, webhookPage, webhooksPage } from "./console/webhook-page.ts";
import { measureWebhooks } from "./db/webhook-deliveries.ts";
import { WEBHOOK_METRICS } from "./declared.ts";
import { webhookFaults } from "./find-faults.ts";
import { openWebhookRequests } from "./job.ts";
import { webhooksPage as portalPage } from "./portal/webhooks-page.ts";
import { changeWebhook } from "./routes/change-webhook.ts";
import { createWebhook } from "./routes/create-webhook.ts";
import { deleteWebhook } from "./routes/delete-webhook.ts";
import { replayWebhook } from "./routes/replay-webhook.ts";
import { rotateWebhook } from "./routes/rotate-webhook.ts";
import { testWebhook } from "./routes/test-webhook.ts";
import { webhook } from "./routes/webhook.ts";
import { webhookDeliveries } from "./routes/webhook-deliveries.ts";
import { webhooks as listWebhooks } from "./routes/webhooks.ts";

/** Maximum number of concurrent tests of webhook endpoints. They use no connection to Postgres. */
const WEBHOOK_TESTS = 16;
/** Deliveries and outbox rows are counted up to this number. */
const MEASURED_MAX = 100_000;

const backlog: WingBacklog<Awaited<ReturnType<typeof measureWebhooks>>> = {
  name: "webhooks",
  measure: (pool) => measureWebhooks(pool, MEASURED_MAX),
  record(metrics, { pending, outbox, oldestDueMs }) {
    const { webhookPending, webhookOldestDue, webhookOutbox } = WEBHOOK_METRICS.of(metrics);
    webhookPending.with().set(pending);
    webhookOldestDue.with().set(oldestDueMs / 1_000);
    webhookOutbox.with().set(outbox);
  },
};

const operatorPages: ConsolePart<WebhookActionDeps> = {
  sections: ["Webhooks"],
  pages: { "/webhooks": ["viewer", webhooksPage], "/webhooks/:id": ["viewer", webhookPage] },
  forms: WEBHOOK_FORMS,
  organizationSection: renderWebhooks,
};

/** What webhooks add to the API: endpoints and their deliveries. */
export const api = {
  open: ({ queueLinks, use }: Pick<Lifetime, "use"> & { queueLinks: QueueResources }) => ({
    webhookRequests: use(openWebhookRequests(queueLinks)),
    webhookTests: new FairSlots(WEBHOOK_TESTS),
  }),
  endpoints: [
    listWebhooks,
    createWebhook,
    webhook,
    changeWebhook,
    deleteWebhook,
    testWebhook,
    rotateWebhook,
    replayWebhook,
    webhookDeliveries,
  ],
  described: {
    webhooks: describeWebhooks(),
    documents: `webhooks.md runbook/webhooks.md webhook-receivers.md webhook-receiver.mjs webhook_receiver.py
        webhook-receiver.php verify-webhook.sh`.split(/\s+/),
  },
  backlog,
  faults: webhookFaults,
  operatorPages,
  portal: { pages: [portalPage] },
};
