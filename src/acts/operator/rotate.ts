import { AppError } from "../../platform/api/errors.ts";
import { act } from "../act.ts";
import { retireOperatorTokens } from "../db/operators.ts";
import { duration } from "../fields.ts";
import { withAuditEntry } from "../with-audit-entry.ts";
import { formatUtcWithZone } from "../words.ts";
import { addToken } from "./add-token.ts";

export const rotateOperator = act({
  name: "operator rotate",
  on: "operator",
  role: "admin",
  title: "Rotate the operator's token",
  about: "The operator gets a new token, which is shown once.",
  examples: ["opr_…", "opr_… --grace 1h"],
  fields: {
    grace: duration("Grace period", { hint: "How long previous tokens still work, at most.", initial: 0 }),
  },
  confirm: {
    loss: (_ctx, id, { grace }) => (grace === 0 ? `This ends the tokens of the operator ${id} at once.` : null),
  },
  async run(ctx, id, { grace }) {
    return withAuditEntry(ctx, { type: "Operator", id }, async (tx) => {
      const oldTokensUntil = await retireOperatorTokens(tx, { operatorId: id, graceMs: grace });
      if (oldTokensUntil === null) throw new AppError("not_found", `There is no operator ${id} who can sign in.`);
      return { ...(await addToken(ctx, tx, id)), oldTokensUntil };
    });
  },
  said: ({ id, oldTokensUntil }, { grace }) =>
    grace === 0
      ? `Operator ${id} has a new token. Previous ones are no longer valid.`
      : `Operator ${id} has a new token. Previous ones are valid until ${formatUtcWithZone(oldTokensUntil)}.`,
  secret: ({ token }) => token,
});
