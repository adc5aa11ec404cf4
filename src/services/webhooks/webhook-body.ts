import { markSandbox } from "../../contract/fields.ts";
import type { WebhookEvent } from "../../contract/webhooks.ts";
import type { DueDelivery } from "../../db/webhook-deliveries.ts";

/** The body of a delivery's request. Every attempt sends the same bytes. */
export function webhookBody(delivery: DueDelivery, sandbox: boolean): string {
  const event = webhookEventOf(delivery);
  return JSON.stringify({ ...event, data: { ...event.data, ...markSandbox(sandbox) } });
}

function webhookEventOf(delivery: DueDelivery): WebhookEvent {
  const { eventType, voucherId, sequence, recordHash, occurredAt, payload, startedAt, expiresAt } = delivery;
  if (eventType === "reservation.expired") {
    if (startedAt === null || expiresAt === null) throw new Error(`${delivery.eventId} has no reservation`);
    const [from, to] = [startedAt.toISOString(), expiresAt.toISOString()];
    return { type: eventType, timestamp: to, data: { voucherId, startedAt: from, expiresAt: to } };
  }
  if (sequence === null || recordHash === null || occurredAt === null || payload === null) {
    throw new Error(`${delivery.eventId} has no sealed event`);
  }
  const timestamp = occurredAt.toISOString();
  const data = { voucherId, sequence, recordHash };
  if (eventType !== "voucher.instance.redeemed") return { type: eventType, timestamp, data };
  const { externalRef, redeemCode } = JSON.parse(payload).data;
  return { type: eventType, timestamp, data: { ...data, externalRef, redeemCode } };
}
