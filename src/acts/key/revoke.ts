import { z } from "zod";
import { text as shown } from "../../platform/api/fields.ts";
import { act } from "../act.ts";
import { endKey } from "../manage-keys.ts";

export const revokeKey = act({
  name: "key revoke",
  on: "key",
  role: "admin",
  title: "Revoke the API key",
  about: "It stops working everywhere within a second, for good.",
  examples: ["key_…"],
  fields: {},
  confirm: { loss: (_ctx, id) => `This permanently revokes the key ${id}: every call with it is refused.` },
  result: z.object({ id: shown("The key's id."), revoked: z.literal(true) }),
  async run(ctx, id) {
    await endKey(ctx, id);
    return { id, revoked: true as const };
  },
  said: ({ id }) => `Key ${id} is revoked.`,
});
