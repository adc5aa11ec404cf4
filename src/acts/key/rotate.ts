import { retireSecrets } from "../../core/keys/db/api-keys.ts";
import { AppError } from "../../platform/api/errors.ts";
import { act } from "../act.ts";
import { duration } from "../fields.ts";
import { withAuditEntry } from "../with-audit-entry.ts";
import { formatUtcWithZone } from "../words.ts";
import { addSecret, sayKey } from "./create.ts";

/** `oldSecretsUntil` in the result is the time when the last old secret stops working. */
export const rotateKey = act({
  name: "key rotate",
  on: "key",
  role: "admin",
  title: "Rotate the API key",
  about: "The key gets a new secret, which is shown once.",
  examples: ["key_…", "key_… --grace 0s"],
  fields: { grace: duration("How long the old secret still works", { initial: 86_400_000 }) },
  confirm: {
    loss: (_ctx, id, { grace }) =>
      grace === 0 ? `This ends the secrets of ${id} at once: every call with them is refused.` : null,
  },
  async run(ctx, keyId, { grace }) {
    return withAuditEntry(ctx, { type: "ApiKey", id: keyId }, async (tx) => {
      const oldSecretsUntil = await retireSecrets(tx, { keyId, graceMs: grace });
      if (oldSecretsUntil === null) throw new AppError("not_found", `There is no key ${keyId} that still works.`);
      return { ...(await addSecret(ctx, tx, keyId)), oldSecretsUntil };
    });
  },
  said: (rotated, { grace }) =>
    `${sayKey(rotated)}. Its old secrets ${
      grace === 0 ? "do not work any longer" : `work until ${formatUtcWithZone(rotated.oldSecretsUntil)}`
    }.`,
  secret: ({ key }) => key,
});
