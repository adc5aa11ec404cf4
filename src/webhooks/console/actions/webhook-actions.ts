import { insertVisit } from "../../../acts/db/audit-entries.ts";
import { type Acting, defineAction, defineSimpleAction, FieldProblem } from "../../../console/actions/action.ts";
import { time } from "../../../console/actions/fields.ts";
import { type Html, html } from "../../../pages/html.ts";
import { AppError } from "../../../platform/api/errors.ts";
import type { FairSlots } from "../../../platform/batching/fair-slots.ts";
import type { DepsOf } from "../../../platform/http/endpoint.ts";
import { testWebhook } from "../../endpoints.ts";
import { disableAnyWebhook, enableAnyWebhook, replayAnyWebhook } from "../../manage-webhooks.ts";

/** What the test of an endpoint takes. */
export type WebhookActionDeps = DepsOf<typeof testWebhook> & { webhookTests: Pick<FairSlots, "hasRoom" | "run"> };

/** What operators do about webhook endpoints. */
export const WEBHOOK_ACTIONS = [
  defineAction({
    is: ["/webhooks/:id/test", "webhook test", "Test the endpoint"],
    role: "operator",
    about: () => "Sends one signed test event, and shows the response within 15 seconds.",
    run: async ({ api, audited }: Acting<WebhookActionDeps>, id, _values, { organizationId }): Promise<Html> => {
      if (!api.webhookTests.hasRoom(organizationId)) throw new AppError("overloaded");
      const acting = { osUser: audited.osUser, host: audited.host, by: audited.by, arguments: {} };
      const look = { ...acting, command: "page webhook test", entity: { type: "WebhookEndpoint", id } } as const;
      await api.operatorReads({}, () => insertVisit(api.pool, look));
      const test = () => testWebhook(api, (read) => api.operatorReads({}, () => read(api.pool)), organizationId, id);
      const { delivered, status, failure, durationMs } = await api.webhookTests.run(organizationId, test);
      const response = status === null ? String(failure).replaceAll("_", " ") : `status ${status}`;
      return html`${delivered ? "Accepted" : "Not accepted"} after ${durationMs} ms: ${response}.`;
    },
  }),
  defineSimpleAction(
    "operator",
    ["/webhooks/:id/disable", "webhook disable", "Disable the endpoint"],
    "Nothing more is sent to it, and only an operator can enable it again.",
    disableAnyWebhook,
  ),
  defineSimpleAction(
    "operator",
    ["/webhooks/:id/enable", "webhook enable", "Enable the endpoint"],
    "Events that happen from now on are sent to it.",
    enableAnyWebhook,
  ),
  defineAction({
    is: ["/webhooks/:id/replay", "webhook replay", "Send deliveries again"],
    role: "operator",
    about: () => "Sends finished deliveries of this time again, delivered and failed ones, the oldest first.",
    fields: { from: time("Events from", "start"), to: time("Events until", "rangeEnd") },
    run: async (ctx, id, { from, to }) => {
      if (to <= from) throw new FieldProblem("to", "must be later than the beginning");
      const { replayed } = await replayAnyWebhook(ctx, id, { from, to });
      return html`Deliveries that will be sent again within seconds: ${replayed}.`;
    },
  }),
];
