import type { Endpoint } from "../platform/http/endpoint.ts";
import { advanceSandbox } from "./routes/advance-sandbox.ts";
import { buyListing } from "./routes/buy-listing.ts";
import { buyProduct } from "./routes/buy-product.ts";
import { changeWebhook } from "./routes/change-webhook.ts";
import { claimByLink } from "./routes/claim-by-link.ts";
import { claimProduct } from "./routes/claim-product.ts";
import { createWebhook } from "./routes/create-webhook.ts";
import { deleteWebhook } from "./routes/delete-webhook.ts";
import { eventProof } from "./routes/event-proof.ts";
import { eventReceipt } from "./routes/event-receipt.ts";
import { health, readiness } from "./routes/health.ts";
import { link } from "./routes/link.ts";
import { listing } from "./routes/listing.ts";
import { listings } from "./routes/listings.ts";
import { lookUp } from "./routes/look-up.ts";
import { partnerEvents } from "./routes/partner-events.ts";
import { publicEvents } from "./routes/public-events.ts";
import { receiptByReference } from "./routes/receipt-by-reference.ts";
import { redeem } from "./routes/redeem.ts";
import { redemption } from "./routes/redemption.ts";
import { redemptionReceipt } from "./routes/redemption-receipt.ts";
import { redemptions } from "./routes/redemptions.ts";
import { release } from "./routes/release.ts";
import { replayWebhook } from "./routes/replay-webhook.ts";
import { reserve } from "./routes/reserve.ts";
import { rotateWebhook } from "./routes/rotate-webhook.ts";
import { testWebhook } from "./routes/test-webhook.ts";
import { webhook } from "./routes/webhook.ts";
import { webhookDeliveries } from "./routes/webhook-deliveries.ts";
import { webhooks } from "./routes/webhooks.ts";

/** Every endpoint, in the order of mounting. A fixed path comes before a path whose parameter would match it. */
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
  listings,
  listing,
  buyListing,
  buyProduct,
  claimProduct,
  link,
  claimByLink,
  health,
  readiness,
] satisfies readonly Endpoint[];
