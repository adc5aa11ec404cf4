import { revokeKey } from "../../core/keys/db/api-keys.ts";
import { AppError } from "../../platform/api/errors.ts";
import { act } from "../act.ts";
import { withAuditEntry } from "../with-audit-entry.ts";

/** Revoking a key again changes nothing. */
export const revokeApiKey = act({
  name: "key revoke",
  on: "key",
  role: "admin",
  title: "Revoke the API key",
  about: "It stops working everywhere within a second, for good.",
  examples: ["key_…"],
  fields: {},
  confirm: { loss: (_ctx, id) => `This permanently revokes the key ${id}: every call with it is refused.` },
  async run(ctx, id) {
    await withAuditEntry(ctx, { type: "ApiKey", id }, async (tx) => {
      if (!(await revokeKey(tx, id))) throw new AppError("not_found", `There is no key ${id}.`);
    });
    return { id, revoked: true };
  },
  said: ({ id }) => `Key ${id} is revoked.`,
});
