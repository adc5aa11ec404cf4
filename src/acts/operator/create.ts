import { newId } from "../../core/voucher/ids.ts";
import { act } from "../act.ts";
import { insertOperator } from "../db/operators.ts";
import { choice, optional, text, time } from "../fields.ts";
import { OPERATOR_ROLES } from "../operator-role.ts";
import { refuseIfTaken, withAuditEntry } from "../with-audit-entry.ts";
import { addToken } from "./add-token.ts";

/** Maximum length of an operator's name, in characters. */
const NAME_MAX = 100;

export const createOperator = act({
  name: "operator create",
  on: null,
  creates: "operator",
  role: "admin",
  title: "Create an operator",
  about: "The operator's token is shown once.",
  examples: ["--name zoe --role operator", "--name audit --role viewer --expires 2027-12-31"],
  fields: {
    name: text("Name", NAME_MAX, { hint: "The user name to sign in with.", placeholder: "<name>" }),
    role: choice("Role", OPERATOR_ROLES, {
      hint: "A viewer reads, an operator does the daily work, and an admin does everything.",
      placeholder: "<role>",
    }),
    expires: optional(time("Expires at", "end", { future: true })),
  },
  refused: "name",
  rules({ name }, refuse) {
    if (name?.includes(":")) refuse("name", (nameOf) => () => `${nameOf("name")} must not contain a colon`);
  },
  async run(ctx, _id, { name, role, expires }) {
    const id = newId("opr");
    const create = withAuditEntry(ctx, { type: "Operator", id }, async (tx) => {
      await insertOperator(tx, { id, name, role, expiresAt: expires });
      return addToken(ctx, tx, id);
    });
    return refuseIfTaken("operators_name", `There is already an operator ${name}.`, create);
  },
  said: ({ id }, { name }) => `Operator ${name}: ${id}`,
  secret: ({ token }) => token,
  next: () => "sign in at URL/ops with the name, and the token as the password",
});
