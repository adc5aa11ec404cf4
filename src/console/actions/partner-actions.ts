import { revokeKey } from "../../acts/key/revoke.ts";
import { listCatalog } from "../../acts/list-catalog.ts";
import { changeContract, makeLink, offerContract } from "../../acts/manage-contracts.ts";
import { createKey, rotateKey } from "../../acts/manage-keys.ts";
import { createOperator } from "../../acts/operator/create.ts";
import { revokeOperator } from "../../acts/operator/revoke.ts";
import { rotateOperator } from "../../acts/operator/rotate.ts";
import { SCOPES } from "../../core/keys/api-keys.ts";
import { html } from "../../pages/html.ts";
import { renderTime } from "../../pages/time.ts";
import { formOf } from "./act-form.ts";
import { type Acting, defineAction, defineSimpleAction } from "./action.ts";
import { integer, line, networks, optionalLine, optionalTime, someOf } from "./fields.ts";

/** Products to choose from, at most. */
const PRODUCTS_MAX = 1_000;

/** A key, which is shown only here, and what to do with it. */
const renderKey = ({ config }: Acting, key: string) => html`<strong>Copy this now. It is not shown again.</strong></p>
<pre class="secret"><code>${key}</code></pre>
<p>Try it in <a href="${config.basePath}/docs#/Partner/redeemVoucher">the API reference</a>: choose Authorize, enter \
the key, and redeem a voucher's code.`;

/** What admins do about named operators. */
export const OPERATOR_ACTIONS = [formOf(createOperator), formOf(rotateOperator), formOf(revokeOperator)];

/** What operators do about API keys and referrers. */
export const PARTNER_ACTIONS = [
  defineAction({
    is: ["/organizations/:id/keys/new", "key create", "Create an API key"],
    role: "admin",
    fields: {
      label: optionalLine("Label", 200, "For your own use: till 1"),
      scopes: someOf("Scopes", SCOPES, { min: 1, initial: ["voucher.read", "voucher.redeem"] }),
      allowIps: networks("Accepted from", "Addresses or networks, such as 192.0.2.0/24. Empty: from anywhere."),
      expiresAt: optionalTime("Expires at", "end"),
    },
    creates: (id) =>
      html`The key <code>${id}</code> was created when this form was first sent, and shown only then. If you have not \
seen it, rotate it on its organization's page.`,
    run: async (ctx, organizationId, values) => {
      const { key } = await createKey(ctx, { ...values, organizationId });
      return renderKey(ctx, key);
    },
  }),
  defineAction({
    is: ["/keys/:id/rotate", "key rotate", "Rotate the API key"],
    role: "admin",
    about: ({ keyId, keyLabel }) => html`<bdi>${keyLabel ?? keyId}</bdi> gets a new secret, which is shown once.`,
    fields: { graceHours: integer("Hours for which the old secret still works", 0, 8_760, "24") },
    run: async (ctx, id, { graceHours }) => {
      const { key, oldSecretsUntil } = await rotateKey(ctx, id, graceHours * 3_600_000);
      return html`${renderKey(ctx, key)} The old secret works until ${renderTime(oldSecretsUntil)}.`;
    },
  }),
  formOf(revokeKey),
  defineAction({
    is: ["/brands/:id/contracts/new", "contract offer", "Offer a referrer a contract"],
    role: "operator",
    fields: {
      user: line("User", 255, "The subject of the referrer's tokens."),
      endsAt: optionalTime("Ends at", "end"),
    },
    refused: "user",
    creates: (id) => `/contracts/${id}`,
    run: (ctx, brandId, { user: userId, endsAt }) => offerContract(ctx, { brandId, userId, endsAt }),
  }),
  defineSimpleAction(
    "operator",
    ["/contracts/:id/accept", "contract accept", "Accept the contract"],
    "The referrer has accepted: links can be made.",
    (ctx, id) => changeContract(ctx, id, "Active"),
  ),
  defineSimpleAction(
    "operator",
    ["/contracts/:id/decline", "contract decline", "Decline the contract"],
    "The referrer has declined the contract.",
    (ctx, id) => changeContract(ctx, id, "Declined"),
  ),
  defineSimpleAction(
    "operator",
    ["/contracts/:id/end", "contract end", "End the contract"],
    "Its links stop working at once, for good.",
    (ctx, id) => changeContract(ctx, id, "Ended"),
  ),
  defineAction({
    is: ["/contracts/:id/links/new", "link create", "Create a link"],
    role: "operator",
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
