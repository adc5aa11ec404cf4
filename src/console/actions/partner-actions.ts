import { insertVisit } from "../../acts/db/audit-entries.ts";
import { listCatalog } from "../../acts/list-catalog.ts";
import { changeContract, makeLink, offerContract } from "../../acts/manage-contracts.ts";
import { createKey, endKey, rotateKey } from "../../acts/manage-keys.ts";
import { SCOPES } from "../../core/keys/api-keys.ts";
import { type Html, html } from "../../pages/html.ts";
import { renderTime } from "../../pages/time.ts";
import { AppError } from "../../platform/api/errors.ts";
import { testWebhook } from "../../webhooks/endpoints.ts";
import { disableAnyWebhook, enableAnyWebhook, replayAnyWebhook } from "../../webhooks/manage-webhooks.ts";
import { type Acting, defineAction, FieldProblem, type Fields } from "./action.ts";
import { integer, line, networks, optionalLine, optionalTime, someOf, time } from "./fields.ts";

/** Products to choose from, at most. */
const PRODUCTS_MAX = 1_000;

/** A key, which is shown only here, and what to do with it. */
const renderKey = ({ config }: Acting, key: string) => html`<strong>Copy this now. It is not shown again.</strong></p>
<pre class="secret"><code>${key}</code></pre>
<p>Try it in <a href="${config.basePath}/docs#/Partner/redeemVoucher">the API reference</a>: choose Authorize, enter the key, and redeem a voucher's code.`;

/** An action without fields, and without a page of its own after it. */
const simple = (
  is: readonly [string, string, string],
  about: string,
  act: (ctx: Acting, id: string) => Promise<unknown>,
) =>
  defineAction<Fields>({
    is,
    about: () => about,
    run: async (ctx, id) => {
      await act(ctx, id);
      return is[0].replace(/:id.*/, id);
    },
  });

/** What operators do about API keys, webhook endpoints and referrers. */
export const PARTNER_ACTIONS = [
  defineAction({
    is: ["/organizations/:id/keys/new", "key create", "Create an API key"],
    fields: {
      label: optionalLine("Label", 200, "For your own use: till 1"),
      scopes: someOf("Scopes", SCOPES, { min: 1, initial: ["voucher.read", "voucher.redeem"] }),
      allowIps: networks("Accepted from", "Addresses or networks, such as 192.0.2.0/24. Empty: from anywhere."),
      expiresAt: optionalTime("Expires at", "end"),
    },
    creates: (id) =>
      html`The key <code>${id}</code> was created when this form was first sent, and shown only then. If you have not seen it, rotate it on its organization's page.`,
    run: async (ctx, organizationId, values) => {
      const { key } = await createKey(ctx, { ...values, organizationId });
      return renderKey(ctx, key);
    },
  }),
  defineAction({
    is: ["/keys/:id/rotate", "key rotate", "Rotate the API key"],
    about: ({ keyId, keyLabel }) => html`<bdi>${keyLabel ?? keyId}</bdi> gets a new secret, which is shown once.`,
    fields: { graceHours: integer("Hours for which the old secret still works", 0, 8_760, "24") },
    run: async (ctx, id, { graceHours }) => {
      const { key, oldSecretsUntil } = await rotateKey(ctx, id, graceHours * 3_600_000);
      return html`${renderKey(ctx, key)} The old secret works until ${renderTime(oldSecretsUntil)}.`;
    },
  }),
  defineAction({
    is: ["/keys/:id/revoke", "key revoke", "Revoke the API key"],
    about: ({ keyId, keyLabel }) =>
      html`<bdi>${keyLabel ?? keyId}</bdi> stops working everywhere within a second, for good.`,
    run: async (ctx, id, _values, { organizationId }) => {
      await endKey(ctx, id);
      return `/organizations/${organizationId}`;
    },
  }),
  defineAction({
    is: ["/webhooks/:id/test", "webhook test", "Test the endpoint"],
    about: () => "Sends one signed test event, and shows the response within 15 seconds.",
    run: async ({ api, audited }, id, _values, { organizationId }): Promise<Html> => {
      if (!api.webhookTests.hasRoom(organizationId)) throw new AppError("overloaded");
      const by = { osUser: audited.osUser, host: audited.host, arguments: {} };
      const entry = { ...by, command: "page webhook test", entity: { type: "WebhookEndpoint", id } } as const;
      await api.operatorReads({}, () => insertVisit(api.pool, entry));
      const test = () => testWebhook(api, (read) => api.operatorReads({}, () => read(api.pool)), organizationId, id);
      const { delivered, status, failure, durationMs } = await api.webhookTests.run(organizationId, test);
      const response = status === null ? String(failure).replaceAll("_", " ") : `status ${status}`;
      return html`${delivered ? "Accepted" : "Not accepted"} after ${durationMs} ms: ${response}.`;
    },
  }),
  simple(
    ["/webhooks/:id/disable", "webhook disable", "Disable the endpoint"],
    "Nothing more is sent to it, and only an operator can enable it again.",
    disableAnyWebhook,
  ),
  simple(
    ["/webhooks/:id/enable", "webhook enable", "Enable the endpoint"],
    "Events that happen from now on are sent to it.",
    enableAnyWebhook,
  ),
  defineAction({
    is: ["/webhooks/:id/replay", "webhook replay", "Send deliveries again"],
    about: () => "Sends finished deliveries of this time again, delivered and failed ones, the oldest first.",
    fields: { from: time("Events from", "start"), to: time("Events until", "rangeEnd") },
    run: async (ctx, id, { from, to }) => {
      if (to <= from) throw new FieldProblem("to", "must be later than the beginning");
      const { replayed } = await replayAnyWebhook(ctx, id, { from, to });
      return html`Deliveries that will be sent again within seconds: ${replayed}.`;
    },
  }),
  defineAction({
    is: ["/brands/:id/contracts/new", "contract offer", "Offer a referrer a contract"],
    fields: {
      user: line("User", 255, "The subject of the referrer's tokens."),
      endsAt: optionalTime("Ends at", "end"),
    },
    refused: "user",
    creates: (id) => `/contracts/${id}`,
    run: (ctx, brandId, { user: userId, endsAt }) => offerContract(ctx, { brandId, userId, endsAt }),
  }),
  simple(
    ["/contracts/:id/accept", "contract accept", "Accept the contract"],
    "The referrer has accepted: links can be made.",
    (ctx, id) => changeContract(ctx, id, "Active"),
  ),
  simple(
    ["/contracts/:id/decline", "contract decline", "Decline the contract"],
    "The referrer has declined the contract.",
    (ctx, id) => changeContract(ctx, id, "Declined"),
  ),
  simple(
    ["/contracts/:id/end", "contract end", "End the contract"],
    "Its links stop working at once, for good.",
    (ctx, id) => changeContract(ctx, id, "Ended"),
  ),
  defineAction({
    is: ["/contracts/:id/links/new", "link create", "Create a link"],
    about: () => "Each signed-in user can claim a voucher with the link while the contract is active.",
    fields: {
      product: {
        ...line("Product", 128),
        choices: async (ctx, { brandId }) => {
          const page = { after: "", limit: PRODUCTS_MAX };
          const { items } = await ctx.operatorReads({}, () =>
            listCatalog(ctx, "products", { brand: String(brandId) }, page),
          );
          return items.map(({ id, name }) => [id, name] as const);
        },
      },
    },
    refused: "product",
    creates: (_id, contractId) => `/contracts/${contractId}`,
    run: (ctx, contractId, { product }) => makeLink(ctx, contractId, product),
  }),
];
