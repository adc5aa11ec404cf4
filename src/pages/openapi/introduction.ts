import type { Tag } from "../../platform/http/access.ts";

/** What a reader must know first, in Markdown. It is shown above the endpoints. */
export const INTRODUCTION = `Look up vouchers, reserve one for a checkout, redeem it exactly once under your own order \
reference, release a reservation, and read a voucher's sealed events.

## Conventions

- Bodies are JSON objects in UTF-8 of at most 16 KiB. The media type and the charset in \`Content-Type\` do not \
matter, and a byte order mark is ignored. Unknown fields are ignored. Every success is a 200.
- Times are ISO 8601 in UTC with milliseconds, by the service's clock. Amounts are numbers in US dollars with at most \
two decimals.
- Codes may be typed in any case, with or without spaces and hyphens, with O for 0 and I or L for 1. A reservation's \
ticket works wherever a code does.
- Every response has \`X-Request-Id\`: the value you send, if it has up to 128 letters, digits and \`. _ : -\`, or a \
new one.
- Responses contain codes and reservations, so they have \`Cache-Control: no-store\`.
- New fields and new error codes may be added: ignore fields that you do not know, and branch on the status when you \
do not know the code. [The policy](docs/versioning) says what else may change, and when.
- [The guide for partners](docs/guide) shows how to combine the calls.

## Errors

Every error response is JSON: \`error\` is a sentence for the person at the till or in the shop, in the language that \
\`Accept-Language\` asks for; show it. \`code\` is stable and for programs, \`requestId\` identifies the request when \
you contact us.

**Limits.** Each key has one limit per second for reads and another for reserve, redeem and release. Users have their \
own limits, and requests without a key or token are limited by address. What remains of the limit is in the response \
header \`RateLimit\`. A request over the limit gets a 429 with \`Retry-After\`. A key that tries too many codes that \
do not exist, or belong to another organization, gets a 429 for every request by code, even for its own codes. \
Requests by ticket, releases, and retries of a redemption that has succeeded still work.

**Retries.** [The guide's table](docs/retries) says what to do with each response. Keep the \
\`externalRef\` of a redemption: a reference redeems at most one voucher, so a repeat with the same reference is safe. \
A new reference uses another voucher.
`;

const DESCRIPTIONS: Record<Tag, string> = {
  Partner:
    "For sellers and tills, with an API key. A key has access only to vouchers of its own organization's brands.",
  Webhooks:
    "For a partner's back office, with an API key: your server gets a signed request when something happens to " +
    "your organization's vouchers.",
  Issuer:
    "For an organization's own back office, with an API key that has the scope `voucher.issue`: create products, " +
    "issue vouchers, read their codes, and void them. Everything of another organization is " +
    "unknown. The operator switches these routes on. [Issue from your back office](docs/issuing) has examples.",
  Sandbox:
    "For keys of a sandbox organization, which begin with `pvt_`. Such an organization has vouchers of its own " +
    "for tests. Every response about them has `sandbox: true`; everything else is as for live organizations.",
  "Public verification": "For anyone who wants to verify a voucher's history.",
  Marketplace:
    "For storefronts: signed-in users claim and buy vouchers from open windows, with their own token. Keep the " +
    "`paymentRef` of a purchase: it buys at most one voucher, so a repeat with the same one is safe.",
  Health: "For probes and load balancers.",
};

/** The groups of the reference, in order. */
export const TAGS = Object.entries(DESCRIPTIONS).map(([name, description]) => ({ name, description }));

export const SECURITY_SCHEMES = {
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "X-Api-Key",
    description:
      "A partner's key, bound to one organization. Its scopes are `voucher.read` (look up, events), " +
      "`voucher.redeem` (reserve, redeem, release), `voucher.webhook` (webhook endpoints) and `voucher.issue` " +
      "(products, batches, codes, voids).",
  },
  userToken: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "The token of a signed-in user; its subject is the user.",
  },
} as const;
