import { z } from "zod";
import { AppError } from "../../platform/api/errors.ts";
import { text as shown } from "../../platform/api/fields.ts";
import { act } from "../act.ts";
import { revokeOperatorRow } from "../db/operators.ts";
import { withAuditEntry } from "../with-audit-entry.ts";

export const revokeOperator = act({
  name: "operator revoke",
  on: "operator",
  role: "admin",
  title: "Revoke the operator",
  about: "The operator's tokens stop working within a second. This cannot be undone.",
  examples: ["opr_…"],
  fields: {},
  confirm: { loss: (_ctx, id) => `This permanently revokes the operator ${id}.` },
  result: z.object({ id: shown("The operator's id."), revoked: z.literal(true) }),
  async run(ctx, id) {
    await withAuditEntry(ctx, { type: "Operator", id }, async (tx) => {
      if (!(await revokeOperatorRow(tx, id))) throw new AppError("not_found", `There is no operator ${id}.`);
    });
    return { id, revoked: true as const };
  },
  said: ({ id }) => `Operator ${id} is revoked.`,
});
