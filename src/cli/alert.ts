import { newId } from "../core/voucher/ids.ts";
import { ConfigError, readAlertConfig } from "../platform/config.ts";
import { openWebhookSender } from "../platform/outgoing/send-webhook.ts";
import { sendAlert } from "../watch/alerts.ts";
import { type Noun, verbWithoutServers } from "./command.ts";
import { EXIT } from "./exit-code.ts";
import { paint } from "./format.ts";

export const alert: Noun = {
  name: "alert",
  description: "messages about red faults",
  verbs: {
    test: verbWithoutServers({
      description: "send a test to ALERT_URL from this machine; exit status 1 when it is not accepted",
      help: "Reads ALERT_URL, ALERT_SECRET and WEBHOOK_ALLOW_PRIVATE, as the API does.",
      async run(ctx) {
        const config = readAlertConfig(ctx.host.readEnvironment());
        const { url } = config.alerts;
        if (url === null) throw new ConfigError("ALERT_URL is not set");
        const webhookSender = openWebhookSender({ allowPrivate: config.privateReceivers });
        const now = new Date();
        const told = { severity: "grey" as const, what: "This is a test", subject: "Alerts", since: now, endedAt: now };
        const sending = sendAlert({ config, webhookSender }, { url, id: newId("alr"), told, now });
        const result = await sending.finally(() => webhookSender.close());
        const { status = null, failure = "timeout" } = result ?? {};
        const reason = failure === "status" || failure === "redirect" ? `status ${status}` : failure;
        ctx.print({ accepted: failure === null, status, failure }, () =>
          failure === null
            ? `${paint("green", "Accepted")} with status ${status}.`
            : `${paint("red", "Not accepted")}: ${reason}.`,
        );
        if (failure !== null) process.exitCode = EXIT.refused;
      },
    }),
  },
};
