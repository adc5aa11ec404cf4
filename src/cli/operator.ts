import { LISTS } from "../acts/db/lists.ts";
import { formatUtcWithZone } from "../acts/words.ts";
import type { Noun } from "./command.ts";
import { listVerb } from "./list.ts";

export const operator: Noun = {
  name: "operator",
  description: "people who sign in to the operator pages under names of their own",
  verbs: {
    list: listVerb(LISTS.operators, {
      cursor: /^opr_\w+$/,
      headings: ["ID", "ROLE", "STATE", "NAME"],
      toRow: ({ id, role, state, name, expiresAt, revokedAt, oldTokensUntil }) => {
        const since = revokedAt ?? expiresAt;
        const isActive = state === "Active";
        const note = [
          since && `${isActive ? "expires" : state.toLowerCase()} ${formatUtcWithZone(since)}`,
          isActive && oldTokensUntil && `a previous token is valid until ${formatUtcWithZone(oldTokensUntil)}`,
        ];
        return { cells: [id, role, state.toLowerCase(), name], note: note.filter(Boolean).join("; ") };
      },
      examples: ["", "--json"],
    }),
  },
};
