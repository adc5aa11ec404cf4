import type { Config } from "../../platform/config.ts";
import { sendWebhook, type WebhookResult, type WebhookSender } from "../../platform/outgoing/send-webhook.ts";
import { keyOfSecret, webhookHeaders } from "../../platform/outgoing/webhook-signature.ts";
import { alertBody, type ToldFault } from "../alerts.ts";

export interface AlertSending {
  config: Pick<Config, "alerts" | "baseUrl">;
  webhookSender: WebhookSender;
}

/**
 * Sends the beginning or the end of a fault to ALERT_URL with the rules for webhooks, signed like them if ALERT_SECRET
 * is set. Returns null if the process stops before the message is sent.
 */
export async function sendAlert(
  ctx: AlertSending & { config: { alerts: { url: string } } },
  { id, fault, now }: { id: string; fault: ToldFault & { endedAt: string | null }; now: Date },
): Promise<WebhookResult | null> {
  const { alerts, baseUrl } = ctx.config;
  const body = JSON.stringify(alertBody(fault, `${baseUrl}/ops`));
  const signature =
    alerts.secret === null
      ? {}
      : webhookHeaders({
          id,
          timestampSeconds: Math.floor(now.getTime() / 1_000),
          body,
          keys: [keyOfSecret(alerts.secret)],
        });
  return sendWebhook(ctx, { url: alerts.url, headers: signature, body });
}
