import { partnerEvents } from "../core/chain/routes/partner-events.ts";
import { publicEvents } from "../core/chain/routes/public-events.ts";
import { lookUp } from "../core/look-up/routes/look-up.ts";
import { redeem } from "../core/redeem/routes/redeem.ts";
import { redemption } from "../core/redeem/routes/redemption.ts";
import { redemptions } from "../core/redeem/routes/redemptions.ts";
import { release } from "../core/reserve/routes/release.ts";
import { reserve } from "../core/reserve/routes/reserve.ts";
import { advanceSandbox } from "../core/sandbox/routes/advance-sandbox.ts";
import { health, readiness } from "../core/servers/health.ts";
import type { Endpoint } from "../platform/http/endpoint.ts";
import { eventProof } from "../transparency/routes/event-proof.ts";
import { eventReceipt } from "../transparency/routes/event-receipt.ts";
import { receiptByReference } from "../transparency/routes/receipt-by-reference.ts";
import { redemptionReceipt } from "../transparency/routes/redemption-receipt.ts";
import { changeWebhook } from "../webhooks/routes/change-webhook.ts";
import { createWebhook } from "../webhooks/routes/create-webhook.ts";
import { deleteWebhook } from "../webhooks/routes/delete-webhook.ts";
import { replayWebhook } from "../webhooks/routes/replay-webhook.ts";
import { rotateWebhook } from "../webhooks/routes/rotate-webhook.ts";
import { testWebhook } from "../webhooks/routes/test-webhook.ts";
import { webhook } from "../webhooks/routes/webhook.ts";
import { webhookDeliveries } from "../webhooks/routes/webhook-deliveries.ts";
import { webhooks } from "../webhooks/routes/webhooks.ts";
import { each } from "./wings/api.ts";

/** Every endpoint, in the order of the API reference. */
export const ENDPOINTS = [
  reserve,
  redeem,
  release,
  lookUp,
  partnerEvents,
  eventReceipt,
  redemptionReceipt,
  receiptByReference,
  redemptions,
  redemption,
  webhooks,
  createWebhook,
  webhook,
  changeWebhook,
  deleteWebhook,
  testWebhook,
  rotateWebhook,
  replayWebhook,
  webhookDeliveries,
  advanceSandbox,
  publicEvents,
  eventProof,
  health,
  readiness,
  ...each("endpoints").flat(),
] satisfies readonly Endpoint[];
