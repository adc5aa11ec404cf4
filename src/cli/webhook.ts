import { Option } from "commander";
import { ConfigError } from "../config.ts";
import {
  DELIVERY_STATES,
  type DeliveryState,
  REPLAY_MAX,
  type WebhookDeliveryView,
} from "../contract/webhook-deliveries.ts";
import { WEBHOOK_EVENT_TYPES, type WebhookEventType, type WebhookView } from "../contract/webhooks.ts";
import {
  createEndpoint,
  disableEndpoint,
  enableEndpoint,
  listEndpointDeliveries,
  listEndpoints,
  replayEndpoint,
  rotateEndpoint,
} from "../services/webhooks/manage-webhooks.ts";
import { openWebhookSender } from "../services/webhooks/send-webhook.ts";
import { testWebhook } from "../services/webhooks/test-webhook.ts";
import type { WebhookDeps } from "../services/webhooks/webhook-view.ts";
import { action, type CommandContext, type Noun } from "./command.ts";
import { EXIT, UsageError } from "./exit-code.ts";
import { formatUtcWithZone, pluralize } from "./format.ts";
import { formatSecret, formatTable, type TableRow } from "./layout.ts";
import { collect, integer, isoDate, name, repeatable } from "./option-parsers.ts";
import { paint } from "./paint.ts";

const LIMIT_MAX = 1_000;
const LIMIT_DEFAULT = 100;

interface CreateOptions {
  org: string;
  url: string;
  description?: string;
  eventType?: WebhookEventType[];
}

interface ReplayOptions {
  from?: Date;
  to?: Date;
  eventId?: string[];
}

interface DeliveriesOptions {
  state?: DeliveryState;
  limit: number;
  after?: string;
}

export const webhook: Noun = {
  name: "webhook",
  description: "partners' endpoints that receive events",
  addVerbs(noun) {
    action<CreateOptions>(
      noun
        .command("create")
        .description("create an endpoint; its secret is shown only once")
        .requiredOption("--org <id>", "its organization")
        .requiredOption("--url <url>", "where events are sent")
        .option("--description <text>", "a name for its partner's use", name)
        .option(
          "--event-type <type>",
          `what is sent; repeatable, default all: ${WEBHOOK_EVENT_TYPES.join(", ")}`,
          repeatable("type", WEBHOOK_EVENT_TYPES),
        )
        .addHelpText("after", NEEDS_SECRET),
      ["webhook create --org org_… --url https://shop.example.com/hooks"],
      async (ctx, { org, url, description = "", eventType = [] }) => {
        const created = await createEndpoint({ ...ctx, ...settingsOf(ctx) }, org, {
          url,
          description,
          enabled: true,
          eventTypes: eventType,
        });
        ctx.print(created, () => `Webhook endpoint ${created.id}\n${formatSecret(created.secret)}`);
        ctx.next(`voucherctl webhook test ${created.id}`);
      },
    );
    action<{ org: string }>(
      noun
        .command("list")
        .description("list an organization's endpoints")
        .requiredOption("--org <id>", "the organization"),
      ["webhook list --org org_…"],
      async (ctx, options) => {
        const listed = await listEndpoints(ctx, options.org);
        ctx.print(listed, () =>
          listed.webhooks.length === 0
            ? "No webhook endpoints."
            : formatTable(["ID", "STATE", "EVENTS", "URL"], listed.webhooks.map(toEndpointRow)),
        );
      },
    );
    action(
      noun
        .command("test <id>")
        .description("send a signed test from this machine; exit status 1 when it is not accepted")
        .addHelpText("after", NEEDS_SECRET),
      ["webhook test whk_…"],
      async (ctx, _options, id = "") => {
        const settings = settingsOf(ctx);
        const webhookSender = openWebhookSender(settings.config.webhooks);
        const tested = await testWebhook({ ...settings, webhookSender }, ctx.pool, null, id).finally(() =>
          webhookSender.close(),
        );
        const { delivered, status, failure, durationMs } = tested;
        ctx.print(tested, () =>
          delivered
            ? `${paint("green", "Accepted")} with status ${status} after ${durationMs} ms.`
            : `${paint("red", "Not accepted")} after ${durationMs} ms: ${failure === "status" || failure === "redirect" ? `status ${status}` : failure}.`,
        );
        if (!delivered) process.exitCode = EXIT.refused;
      },
    );
    action(
      noun
        .command("rotate <id>")
        .description("give an endpoint a new secret, which is shown only once; the old one also signs for 24 hours")
        .addHelpText("after", NEEDS_SECRET),
      ["webhook rotate whk_…"],
      async (ctx, _options, id = "") => {
        const rotated = await rotateEndpoint({ ...ctx, ...settingsOf(ctx) }, id);
        ctx.print(
          rotated,
          () =>
            `${formatSecret(rotated.secret)}\nThe previous secret also signs until ${formatUtcWithZone(new Date(rotated.previousSecretUntil))}.`,
        );
      },
    );
    action(
      noun.command("disable <id>").description("send nothing more to an endpoint; its partner cannot enable it again"),
      ["webhook disable whk_…"],
      async (ctx, _options, id = "") => {
        const endpoint = await disableEndpoint(ctx, id);
        ctx.print(endpoint, () => `Webhook endpoint ${id} is disabled.`);
      },
    );
    action(
      noun.command("enable <id>").description("send events to a disabled endpoint again"),
      ["webhook enable whk_…"],
      async (ctx, _options, id = "") => {
        const endpoint = await enableEndpoint(ctx, id);
        ctx.print(endpoint, () => `Webhook endpoint ${id} is enabled.`);
      },
    );
    action<ReplayOptions>(
      noun
        .command("replay <id>")
        .description(`send finished deliveries again, at most ${REPLAY_MAX}, the oldest first`)
        .option("--from <time>", "events at or after this time, with --to", isoDate)
        .option("--to <time>", "events before this time, with --from", isoDate)
        .option("--event-id <id>", "this event; repeatable", collect),
      ["webhook replay whk_… --from 2026-11-21 --to 2026-11-22", "webhook replay whk_… --event-id vch_…-2"],
      async (ctx, { from, to, eventId }, id = "") => {
        const byTime = from !== undefined && to !== undefined && from < to;
        if (eventId === undefined ? !byTime : from !== undefined || to !== undefined) {
          throw new UsageError("Give --from and a later --to, or one or more --event-id.");
        }
        const result = await replayEndpoint(ctx, id, { from, to, eventIds: eventId });
        ctx.print(
          result,
          () => `${pluralize(result.replayed, "delivery", "deliveries")} will be sent again within seconds.`,
        );
      },
    );
    action<DeliveriesOptions>(
      noun
        .command("deliveries <id>")
        .description("list what was sent to an endpoint in the last 30 days and what waits, newest first")
        .addOption(new Option("--state <state>", "only deliveries in this state").choices(DELIVERY_STATES))
        .option("--limit <n>", "number of deliveries on the page", integer(1, LIMIT_MAX), LIMIT_DEFAULT)
        .option("--after <cursor>", "the nextCursor of the page before"),
      ["webhook deliveries whk_… --state Failed"],
      async (ctx, { state, limit, after }, id = "") => {
        const page = await listEndpointDeliveries(ctx, id, { state, limit, cursor: after });
        ctx.print(page, () =>
          page.deliveries.length === 0
            ? "No deliveries."
            : formatTable(["EVENT", "TYPE", "STATE", "ATTEMPTS", "LAST RESULT"], page.deliveries.map(toDeliveryRow)),
        );
        if (page.nextCursor !== null) ctx.next(`the same command with --after ${page.nextCursor}`);
      },
    );
  },
};

const NEEDS_SECRET = "\nReads WEBHOOK_SECRET and WEBHOOK_ALLOW_PRIVATE, as the API and the workers do.";

function settingsOf(ctx: CommandContext): WebhookDeps {
  const webhooks = ctx.readWebhookConfig();
  if (webhooks.secret === null) throw new ConfigError("WEBHOOK_SECRET is not set");
  return { config: { webhooks } };
}

function toEndpointRow({ id, url, description, eventTypes, disabledReason, failingSince }: WebhookView): TableRow {
  const state =
    disabledReason !== null
      ? paint("red", `disabled: ${disabledReason}`)
      : failingSince !== null
        ? paint("yellow", "failing")
        : paint("green", "enabled");
  const events = eventTypes.length === 0 ? "all" : String(eventTypes.length);
  const note = eventTypes.length === 0 ? description : [description, eventTypes.join(" ")].filter(Boolean).join("; ");
  return { cells: [id, state, events, url], note };
}

function toDeliveryRow(delivery: WebhookDeliveryView): TableRow {
  const { eventId, eventType, state, attempts, lastStatus, lastFailure, nextAttemptAt } = delivery;
  const result = lastStatus === null ? (lastFailure ?? "") : String(lastStatus);
  const note = nextAttemptAt === null ? "" : `next attempt ${formatUtcWithZone(new Date(nextAttemptAt))}`;
  return { cells: [eventId, eventType, state, String(attempts), result], note };
}
