import { hashSecret, makeApiKey, SCOPES } from "../../core/keys/api-keys.ts";
import { findKeySandbox, insertKey, insertSecret } from "../../core/keys/db/api-keys.ts";
import { newId } from "../../core/voucher/ids.ts";
import { markSandbox } from "../../platform/api/fields.ts";
import type { Transaction } from "../../platform/db/pool.ts";
import { act } from "../act.ts";
import { choices, dollars, integer, networks, optional, text, time } from "../fields.ts";
import { type AuditContext, withAuditEntry } from "../with-audit-entry.ts";

/** A key's id and secret. Only the secret's hash is stored, so the secret cannot be shown again. */
export interface ShownKey {
  id: string;
  key: string;
  /** Present if the organization is a sandbox. The key then begins with `pvt_`. */
  sandbox?: true;
}

/** What a key may redeem in one day, from midnight to midnight UTC. */
export const CAPS = {
  maxPerDay: integer("Most redemptions a day", 1, 1_000_000_000, { hint: "Counted from midnight to midnight, UTC." }),
  maxAmountPerDayUsd: dollars("Most value a day", {
    hint: "The sum of the prices of the vouchers that the key redeems from midnight to midnight, UTC.",
    option: "maxAmountPerDay",
  }),
};

/** Creates a key. A key without an organization is possible, but the API refuses every request with it. */
export const createKey = act({
  name: "key create",
  on: "organization",
  mayStandAlone: true,
  creates: "key",
  role: "admin",
  title: "Create an API key",
  examples: [
    '--org org_… --scope voucher.read --scope voucher.redeem --label "till 1"',
    "--org org_… --scope voucher.read --allow-ip 192.0.2.0/24 --expires 2027-12-31",
  ],
  fields: {
    label: optional(text("Label", 200, { hint: "For your own use: till 1" })),
    scopes: choices("Scopes", SCOPES, { option: "scope", suggested: ["voucher.read", "voucher.redeem"] }),
    allowIps: networks("Accepted from", {
      hint: "Addresses or networks, such as 192.0.2.0/24. Empty: from anywhere.",
      option: "allowIp",
    }),
    expiresAt: optional(time("Expires at", "end", { future: true, option: "expires" })),
    maxPerDay: optional(CAPS.maxPerDay),
    maxAmountPerDayUsd: optional(CAPS.maxAmountPerDayUsd),
  },
  async run(ctx, organizationId, terms) {
    const id = newId("key");
    return withAuditEntry(ctx, { type: "ApiKey", id }, async (tx) => {
      await insertKey(tx, { ...terms, organizationId: organizationId || null, id });
      return addSecret(ctx, tx, id);
    });
  },
  said: sayKey,
  secret: ({ key }) => key,
  next: () => "try it: curl -s URL/partner/vouchers/CODE -H 'X-Api-Key: KEY'",
});

export function sayKey({ id, sandbox }: ShownKey): string {
  return `${sandbox ? "Sandbox key" : "Key"} ${id}`;
}

/** Gives a key a new current secret. Its prefix depends on whether the organization is a sandbox. */
export async function addSecret(
  ctx: Pick<AuditContext, "randomBytes">,
  tx: Transaction,
  id: string,
): Promise<ShownKey> {
  const sandbox = await findKeySandbox(tx, id);
  const key = makeApiKey(ctx.randomBytes, sandbox);
  await insertSecret(tx, id, hashSecret(key));
  return { id, key, ...markSandbox(sandbox) };
}
