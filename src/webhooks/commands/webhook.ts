import { type CommandFace, verbOf } from "../../cli/act-verb.ts";
import { type CommandContext, type Noun, verb } from "../../cli/command.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { formatTable, formatUtcWithZone, paint, type TableRow } from "../../cli/format.ts";
import { integer, ORG, option } from "../../cli/options.ts";
import { ConfigError, readWingConfig } from "../../platform/config.ts";
import { openWebhookSender } from "../../platform/outgoing/send-webhook.ts";
import { createAnyWebhook, rotateAnyWebhook, testAnyWebhook, type WebhookTester } from "../acts.ts";
import { selectOrganizationOfWebhook } from "../any-webhook.ts";
import { DELIVERY_STATES, type TestedWebhook, type WebhookDeliveryView } from "../api/webhook-deliveries.ts";
import type { WebhookView } from "../api/webhooks.ts";
import { webhookVariables } from "../declared.ts";
import { testWebhook, type WebhookDeps } from "../endpoints.ts";
import { listAnyWebhookDeliveries, listWebhooksOf } from "../list-webhooks.ts";

const LIMIT_MAX = 1_000;
const LIMIT_DEFAULT = 100;

/** Gives acts that make a new secret the settings of webhooks. */
const WITH_SETTINGS = {
  around: async <Result>(ctx: CommandContext, _options: object, perform: (deps: WebhookDeps) => Promise<Result>) => ({
    result: await perform(settingsOf(ctx)),
  }),
};

/** Sends the test event from this machine. Fails the command if the endpoint does not accept the event. */
const TEST: CommandFace<TestedWebhook, WebhookTester> = {
  async around(ctx, _options, perform) {
    const settings = settingsOf(ctx);
    const webhookSender = openWebhookSender({ allowPrivate: settings.config.privateReceivers });
    const testEndpoint = async (id: string) => {
      const organizationId = await selectOrganizationOfWebhook(ctx.pool, id);
      return testWebhook({ ...settings, webhookSender }, (read) => read(ctx.pool), organizationId, id);
    };
    const result = await perform({ testEndpoint }).finally(() => webhookSender.close());
    if (!result.delivered) process.exitCode = EXIT.refused;
    return { result };
  },
};

export const webhook: Noun = {
  name: "webhook",
  description: "partners' endpoints that receive events",
  verbs: {
    ...verbOf(createAnyWebhook, WITH_SETTINGS),
    ...verbOf(testAnyWebhook, TEST),
    ...verbOf(rotateAnyWebhook, WITH_SETTINGS),
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
  const config = readWingConfig(ctx.env, webhookVariables);
  if (webhookVariables.of(config).secret === null) throw new ConfigError("WEBHOOK_SECRET is not set");
  return { config };
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
