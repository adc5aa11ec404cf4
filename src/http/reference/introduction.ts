import type { Tag } from "../endpoint.ts";

/** What a reader has to know before the first endpoint, in Markdown. */
export const INTRODUCTION = `Look vouchers up, hold one for a checkout, burn it exactly once under your own order reference, give it back, and read its sealed history. Users take vouchers from open windows.

## Conventions

- Bodies are JSON objects in UTF-8 of at most 16 KiB. Fields that an endpoint does not know are ignored. Every success is a 200.
- Times are ISO 8601 in UTC with milliseconds, and the service's clock decides. Amounts are numbers in US dollars with at most two decimals.
- Codes may be typed in any case, with or without spaces and hyphens, with O for 0 and I or L for 1. A reservation's ticket works wherever a code does.
- Every answer carries \`X-Request-Id\`: yours if you send one of up to 128 letters, digits and \`. _ : -\`, else a new one.
- Answers carry codes and the state of holds, so they come with \`Cache-Control: no-store\`.
- Answers may get further fields, and refusals further codes: ignore fields that you do not know, and branch on the status when you do not know the code.

## Refusals

Every refusal is JSON: \`error\` is a sentence for a person, \`code\` is stable and for programs, \`requestId\` is for asking us.

**Limits.** Each key may read and move so many times a second, counted apart; users and addresses without a key or token have limits of their own. Answers say what is left in \`RateLimit\`. Beyond that it is a 429 with \`Retry-After\`. A key that tries too many codes that do not exist gets a 429 for every call by code, whether the code exists or not; calls by ticket, release and retries of confirmed references go on.

**The retry rule.** No answer, or a 503: send it again, after \`Retry-After\` seconds if there is one. A redeem must keep its \`externalRef\`, a purchase its \`paymentRef\`: one reference takes one voucher, ever, so repeats are safe, and a new reference takes a new voucher. Of the 400s, only a 429 and a 409 \`voucher_reserved\` or \`window_closed\` can get better with time.
`;

const DESCRIPTIONS: Record<Tag, string> = {
  Partner:
    "For sellers and tills, with an API key. Each key sees the vouchers of its own organization's brands, and nobody else's.",
  "Public verification": "For anyone who wants to check a voucher's history.",
  Marketplace: "For storefronts: signed-in users take vouchers from open windows, with their own token.",
  Health: "For probes and load balancers.",
};

/** The groups of the reference, in order. */
export const TAGS = Object.entries(DESCRIPTIONS).map(([name, description]) => ({ name, description }));

/** What callers show to be let in. */
export const SECURITY_SCHEMES = {
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "X-Api-Key",
    description:
      "A partner's key, bound to one organization. Its scopes are `voucher.read` (look up, events) and `voucher.redeem` (reserve, redeem, release).",
  },
  userToken: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "The token of a signed-in user; its subject is the user.",
  },
} as const;
