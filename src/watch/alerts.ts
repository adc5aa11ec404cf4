import type { Config } from "../platform/config.ts";
import { sendWebhook, type WebhookResult, type WebhookSender } from "../platform/outgoing/send-webhook.ts";
import { keyOfSecret, webhookHeaders } from "../platform/outgoing/webhook-signature.ts";
import type { Told } from "./db/faults.ts";

export interface AlertSending {
  config: Pick<Config, "alerts" | "baseUrl">;
  webhookSender: WebhookSender;
}

/** Maximum length of a text that Discord accepts. Characters. */
const DISCORD_MAX = 2_000;

/** The body of a message for a receiver. Google Chat and Discord accept only their own fields. */
export function alertBody(receiver: string, told: Told, url: string): object {
  const body = fieldsOf(told, url);
  const { hostname = "" } = URL.parse(receiver) ?? {};
  if (hostname === "chat.googleapis.com") return { text: body.text };
  if (/^(\w+\.)?discord(app)?\.com$/.test(hostname))
    return { content: body.text.slice(0, DISCORD_MAX), allowed_mentions: { parse: [] } };
  return body;
}

/** The fields of a message. `text` is for people. Slack and Teams read no other field. */
function fieldsOf({ severity, what, subject, since, endedAt }: Told, url: string) {
  const minute = (time: Date) => `${time.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const text =
    endedAt === null
      ? `${severity.toUpperCase()}: ${what} (${subject}), since ${minute(since)}. ${url}`
      : `ENDED: ${what} (${subject}), from ${minute(since)} to ${minute(endedAt)}. ${url}`;
  // Replaces angle brackets by characters that look alike, because in Slack they make links or notify a whole channel.
  const shown = text
    .replaceAll("<", "‹")
    .replaceAll(">", "›")
    .replace(/\p{Cc}/gu, " ");
  return { text: shown, severity, what, subject, since, endedAt, url };
}

/**
 * Sends the beginning or the end of a fault to `url`, under the same rules as webhooks. Signs the message like a
 * webhook if ALERT_SECRET is set. Returns null if the process stops before the message is sent.
 * @param id the same for each attempt to send the message.
 */
export async function sendAlert(
  ctx: AlertSending,
  { url, id, told, now }: { url: string; id: string; told: Told; now: Date },
): Promise<WebhookResult | null> {
  const { alerts, baseUrl } = ctx.config;
  const body = JSON.stringify(alertBody(url, told, `${baseUrl}/ops`));
  const timestampSeconds = Math.floor(now.getTime() / 1_000);
  const signature =
    alerts.secret === null ? {} : webhookHeaders({ id, timestampSeconds, body, keys: [keyOfSecret(alerts.secret)] });
  return sendWebhook(ctx, { url, headers: signature, body });
}
