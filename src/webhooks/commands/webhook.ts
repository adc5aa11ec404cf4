import { type CommandContext, type Noun, verb } from "../../cli/command.ts";
import { EXIT, UsageError } from "../../cli/exit-code.ts";
import { formatSecret, formatTable, formatUtcWithZone, paint, pluralize, type TableRow } from "../../cli/format.ts";
import { collect, integer, name, ORG, option, repeatable, required, time } from "../../cli/options.ts";
import { ConfigError, readWebhookConfig } from "../../platform/config.ts";
import { openWebhookSender } from "../../platform/outgoing/send-webhook.ts";
import { selectOrganizationOfWebhook } from "../any-webhook.ts";
import { DELIVERY_STATES, REPLAY_MAX, type WebhookDeliveryView } from "../api/webhook-deliveries.ts";
import { WEBHOOK_EVENT_TYPES, type WebhookView } from "../api/webhooks.ts";
import { testWebhook, type WebhookDeps } from "../endpoints.ts";
import {
  createWebhookFor,
  disableAnyWebhook,
  enableAnyWebhook,
  listAnyWebhookDeliveries,
  listWebhooksOf,
  replayAnyWebhook,
  rotateAnyWebhook,
} from "../manage-webhooks.ts";

const LIMIT_MAX = 1_000;
const LIMIT_DEFAULT = 100;
const NEEDS_SECRET = "Reads WEBHOOK_SECRET and WEBHOOK_ALLOW_PRIVATE, as the API and the workers do.";
const TYPES_HELP = `what is sent; repeatable, default all: ${WEBHOOK_EVENT_TYPES.join(", ")}`;

export const webhook: Noun = {
  name: "webhook",
  description: "partners' endpoints that receive events",
  verbs: {
    create: verb({
      description: "create an endpoint; its secret is shown only once",
      options: {
        org: required("<id>", "its organization"),
        url: required("<url>", "where events are sent"),
        description: option("<text>", "a name for its partner's use", name),
        eventType: option("<type>", TYPES_HELP, repeatable("type", WEBHOOK_EVENT_TYPES)),
      },
      help: NEEDS_SECRET,
      examples: ["--org org_… --url https://shop.example.com/hooks"],
      async run(ctx, { org, url, description = "", eventType: eventTypes = [] }) {
        const endpoint = { url, description, enabled: true, eventTypes };
        const created = await createWebhookFor({ ...ctx, ...settingsOf(ctx) }, org, endpoint);
        ctx.print(created, () => `Webhook endpoint ${created.id}\n${formatSecret(created.secret)}`);
        ctx.next(`voucherctl webhook test ${created.id}`);
      },
    }),
    list: verb({
      description: "list an organization's endpoints",
      options: { org: ORG },
      examples: ["--org org_…"],
      async run(ctx, { org }) {
        const listed = await listWebhooksOf(ctx, org);
        const headings = ["ID", "STATE", "EVENTS", "URL"];
        ctx.print(listed, () => formatTable(headings, listed.webhooks.map(toWebhookRow), "No webhook endpoints."));
      },
    }),
    "test <id>": verb({
      description: "send a signed test from this machine; exit status 1 when it is not accepted",
      help: NEEDS_SECRET,
      examples: ["whk_…"],
      async run(ctx, _options, id) {
        const settings = settingsOf(ctx);
        const organizationId = await selectOrganizationOfWebhook(ctx.pool, id);
        const webhookSender = openWebhookSender(settings.config.webhooks);
        const testing = testWebhook({ ...settings, webhookSender }, (read) => read(ctx.pool), organizationId, id);
        const tested = await testing.finally(() => webhookSender.close());
        const { delivered, status, failure, durationMs } = tested;
        const reason = failure === "status" || failure === "redirect" ? `status ${status}` : failure;
        ctx.print(tested, () =>
          delivered
            ? `${paint("green", "Accepted")} with status ${status} after ${durationMs} ms.`
            : `${paint("red", "Not accepted")} after ${durationMs} ms: ${reason}.`,
        );
        if (!delivered) process.exitCode = EXIT.refused;
      },
    }),
    "rotate <id>": verb({
      description: "give an endpoint a new secret, which is shown only once; the old one also signs for 24 hours",
      help: NEEDS_SECRET,
      examples: ["whk_…"],
      async run(ctx, _options, id) {
        const rotated = await rotateAnyWebhook({ ...ctx, ...settingsOf(ctx) }, id);
        const until = formatUtcWithZone(new Date(rotated.previousSecretUntil));
        ctx.print(rotated, () => `${formatSecret(rotated.secret)}\nThe previous secret also signs until ${until}.`);
      },
    }),
    "disable <id>": verb({
      description: "send nothing more to an endpoint; its partner cannot enable it again",
      examples: ["whk_…"],
      async run(ctx, _options, id) {
        ctx.print(await disableAnyWebhook(ctx, id), () => `Webhook endpoint ${id} is disabled.`);
      },
    }),
    "enable <id>": verb({
      description: "send events to a disabled endpoint again",
      examples: ["whk_…"],
      async run(ctx, _options, id) {
        ctx.print(await enableAnyWebhook(ctx, id), () => `Webhook endpoint ${id} is enabled.`);
      },
    }),
    "replay <id>": verb({
      description: `send finished deliveries again, at most ${REPLAY_MAX}, the oldest first`,
      options: {
        from: option("<time>", "events at or after this time, or from this day on, with --to", time("start")),
        to: option("<time>", "events before this time, or to the end of this day, with --from", time("rangeEnd")),
        eventId: option("<id>", "this event; repeatable", collect),
      },
      examples: ["whk_… --from 2026-11-21 --to 2026-11-21", "whk_… --event-id vch_…-2"],
      async run(ctx, { from, to, eventId: eventIds }, id) {
        const byTime = from !== undefined && to !== undefined && from < to;
        if (eventIds === undefined ? !byTime : from !== undefined || to !== undefined) {
          throw new UsageError("Give --from and a later --to, or one or more --event-id.");
        }
        const result = await replayAnyWebhook(ctx, id, { from, to, eventIds });
        const deliveries = pluralize(result.replayed, "delivery", "deliveries");
        ctx.print(result, () => `${deliveries} will be sent again within seconds.`);
      },
    }),
    "deliveries <id>": verb({
      description: "list what was sent to an endpoint in the last 30 days and what waits, newest first",
      options: {
        state: option("<state>", "only deliveries in this state", DELIVERY_STATES),
        limit: option("<n>", "number of deliveries on the page", integer(1, LIMIT_MAX), LIMIT_DEFAULT),
        after: option("<cursor>", "the nextCursor of the page before"),
      },
      examples: ["whk_… --state Failed"],
      async run(ctx, { state, limit, after: cursor }, id) {
        const page = await listAnyWebhookDeliveries(ctx, id, { state, limit, cursor });
        const headings = ["EVENT", "TYPE", "STATE", "ATTEMPTS", "LAST RESULT"];
        ctx.print(page, () => formatTable(headings, page.deliveries.map(toDeliveryRow), "No deliveries."));
        if (page.nextCursor !== null) ctx.next(`the same command with --after ${page.nextCursor}`);
      },
    }),
  },
};

function settingsOf(ctx: CommandContext): WebhookDeps {
  const webhooks = readWebhookConfig(ctx.env);
  if (webhooks.secret === null) throw new ConfigError("WEBHOOK_SECRET is not set");
  return { config: { webhooks } };
}

function toWebhookRow({ id, url, description, eventTypes, disabledReason, failingSince }: WebhookView): TableRow {
  const state =
    disabledReason !== null
      ? paint("red", `disabled: ${disabledReason}`)
      : failingSince !== null
        ? paint("yellow", "failing")
        : paint("green", "enabled");
  const events = eventTypes.length === 0 ? "all" : String(eventTypes.length);
  const note = [description, eventTypes.join(" ")].filter(Boolean).join("; ");
  return { cells: [id, state, events, url], note };
}

function toDeliveryRow(delivery: WebhookDeliveryView): TableRow {
  const { eventId, eventType, state, attempts, lastStatus, lastFailure, nextAttemptAt } = delivery;
  const result = lastStatus === null ? (lastFailure ?? "") : String(lastStatus);
  const note = nextAttemptAt === null ? "" : `next attempt ${formatUtcWithZone(new Date(nextAttemptAt))}`;
  return { cells: [eventId, eventType, state, String(attempts), result], note };
}
