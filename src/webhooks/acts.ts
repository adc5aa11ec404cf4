import { act, type Definition } from "../acts/act.ts";
import type { AnyAct } from "../acts/acts.ts";
import { choices, optional, text, texts, time } from "../acts/fields.ts";
import { type AuditContext, withAuditEntry } from "../acts/with-audit-entry.ts";
import { formatUtcWithZone, pluralize } from "../acts/words.ts";
import { newId } from "../core/voucher/ids.ts";
import { problem, problemIn } from "../platform/api/problems.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { ATTEMPT_MAX_MS } from "../platform/outgoing/send-webhook.ts";
import { findUrlProblem } from "../platform/outgoing/webhook-url.ts";
import { selectAnyWebhook, selectOrganizationOfWebhook } from "./any-webhook.ts";
import { REPLAY_MAX, type TestedWebhook } from "./api/webhook-deliveries.ts";
import { WEBHOOK_EVENT_TYPES, type WebhookView } from "./api/webhooks.ts";
import { disableWebhookEndpoint, enableWebhookEndpoint } from "./db/webhook-endpoints.ts";
import { replayDeliveries } from "./deliveries.ts";
import { createWebhook, rotateWebhook, viewWebhook, type WebhookDeps } from "./endpoints.ts";
import { PREVIOUS_SECRET_HOURS } from "./webhook-limits.ts";

const NEEDS_SECRET = "Reads WEBHOOK_SECRET and WEBHOOK_ALLOW_PRIVATE, as the API and the workers do.";
const ON_ENDPOINT = { on: "webhook", role: "operator", examples: ["whk_…"] } as const;
type None = Record<never, never>;

const url = text("URL", 2_000, { hint: "Where events are sent." });
/** Refuses URLs that no deployment accepts. Which further hosts are refused depends on the deployment. */
const readUrl = url.typed.refine((given) => findUrlProblem(given, true) === null, {
  error: ({ input }) => problem(findUrlProblem(String(input), true) ?? "noUrl"),
});

export const createAnyWebhook = act({
  name: "webhook create",
  on: "organization",
  creates: "webhook",
  role: "operator",
  title: "Create a webhook endpoint",
  help: NEEDS_SECRET,
  examples: ["--org org_… --url https://shop.example.com/hooks"],
  fields: {
    url: { ...url, typed: readUrl, json: readUrl },
    description: optional(text("Description", 200, { hint: "A name for its partner's use." })),
    eventTypes: choices("Events", WEBHOOK_EVENT_TYPES, {
      hint: "What is sent. None: everything.",
      option: "eventType",
      initial: [],
    }),
  },
  refused: "url",
  async run(ctx: AuditContext & WebhookDeps, organizationId, { url, description, eventTypes }) {
    const id = newId("whk");
    const endpoint = { url, description: description ?? "", enabled: true, eventTypes };
    return withAuditEntry(ctx, { type: "WebhookEndpoint", id }, (tx) =>
      createWebhook(ctx, tx, organizationId, endpoint, id),
    );
  },
  said: ({ id }) => `Webhook endpoint ${id}`,
  secret: ({ secret }) => secret,
  next: ({ id }) => `voucherctl webhook test ${id}`,
});

export const rotateAnyWebhook = act({
  ...ON_ENDPOINT,
  name: "webhook rotate",
  title: "Give the endpoint a new secret",
  about: `It is shown once. The old one also signs for ${PREVIOUS_SECRET_HOURS} hours.`,
  help: NEEDS_SECRET,
  fields: {},
  async run(ctx: AuditContext & WebhookDeps, id) {
    return withAuditEntry(ctx, { type: "WebhookEndpoint", id }, async (tx) =>
      rotateWebhook(ctx, tx, await selectOrganizationOfWebhook(tx, id), id),
    );
  },
  said: ({ previousSecretUntil }) =>
    `The previous secret also signs until ${formatUtcWithZone(new Date(previousSecretUntil))}.`,
  secret: ({ secret }) => secret,
});

/** Disables or enables an endpoint. A repeat changes nothing. */
const switchBy = (
  words: Pick<Definition<None, WebhookView, object>, "name" | "title" | "about">,
  change: (tx: Transaction, id: string) => Promise<unknown>,
) =>
  act<None, WebhookView>({
    ...ON_ENDPOINT,
    ...words,
    fields: {},
    run: (ctx, id) =>
      withAuditEntry(ctx, { type: "WebhookEndpoint", id }, async (tx) => {
        await change(tx, id);
        return viewWebhook(await selectAnyWebhook(tx, id));
      }),
    said: ({ id, enabled }) => `Webhook endpoint ${id} is ${enabled ? "enabled" : "disabled"}.`,
  });

const disableAnyWebhook = switchBy(
  {
    name: "webhook disable",
    title: "Disable the endpoint",
    about: "Nothing more is sent to it, and only an operator can enable it again.",
  },
  (tx, id) => disableWebhookEndpoint(tx, { id, disabledReason: "operator" }),
);

const enableAnyWebhook = switchBy(
  {
    name: "webhook enable",
    title: "Enable the endpoint",
    about: "Events that happen from now on are sent to it.",
  },
  (tx, id) => enableWebhookEndpoint(tx, id, "operator"),
);

const replayAnyWebhook = act({
  ...ON_ENDPOINT,
  name: "webhook replay",
  title: "Send deliveries again",
  about: `Sends the finished deliveries of this time again, the oldest first, at most ${REPLAY_MAX}.`,
  examples: ["whk_… --from 2026-11-21 --to 2026-11-21", "whk_… --event-id vch_…-2"],
  fields: {
    from: optional(time("Events from", "start")),
    to: optional(time("Events until", "rangeEnd")),
    eventIds: texts("This event, without times", 200, { option: "eventId", placeholder: "<id>", commandOnly: true }),
  },
  rules({ from, to, eventIds: ids }, refuse) {
    if (from === undefined || to === undefined || ids === undefined) return;
    const isRight = ids.length > 0 ? from === null && to === null : from !== null && to !== null && from < to;
    if (isRight) return;
    refuse("to", (nameOf) => (t) => {
      const times = `${nameOf("to")} ${problemIn("laterThan", { name: nameOf("from") })(t)}`;
      return ids.length > 0 ? `${nameOf("eventIds")} takes the place of ${nameOf("from")} and ${nameOf("to")}` : times;
    });
  },
  async run(ctx, id, { from, to, eventIds: ids }) {
    const request = ids.length > 0 ? { eventIds: ids } : { from: from ?? undefined, to: to ?? undefined };
    return withAuditEntry(
      ctx,
      { type: "WebhookEndpoint", id },
      async (tx) => {
        await selectAnyWebhook(tx, id);
        return replayDeliveries(tx, id, request);
      },
      { before: { replayed: 0 }, after: ({ replayed }) => ({ replayed }) },
    );
  },
  said: ({ replayed }) => `${pluralize(replayed, "delivery", "deliveries")} will be sent again within seconds.`,
  isReport: true,
});

/** Sends a test event to an endpoint. The console and the command implement it in different ways. */
export interface WebhookTester {
  testEndpoint(id: string): Promise<TestedWebhook>;
}

export const testAnyWebhook = act({
  ...ON_ENDPOINT,
  name: "webhook test",
  title: "Test the endpoint",
  about: `Sends one signed test event, and shows the response within ${ATTEMPT_MAX_MS / 1_000} seconds.`,
  help: NEEDS_SECRET,
  fields: {},
  run: (ctx: AuditContext & WebhookTester, id) => ctx.testEndpoint(id),
  said({ delivered, status, failure, durationMs }) {
    const isAnswer = delivered || failure === "status" || failure === "redirect";
    const response = isAnswer ? `status ${status}` : String(failure).replaceAll("_", " ");
    return `${delivered ? "Accepted" : "Not accepted"} after ${durationMs} ms: ${response}.`;
  },
  isReport: true,
});

/** All acts on webhook endpoints, in the order of the help. */
export const ACTS: readonly AnyAct[] = [
  createAnyWebhook,
  testAnyWebhook,
  rotateAnyWebhook,
  disableAnyWebhook,
  enableAnyWebhook,
  replayAnyWebhook,
];
