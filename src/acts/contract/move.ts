import { z } from "zod";
import { CONTRACT_MOVES } from "../../core/catalog/audience.ts";
import { findContractStatus, moveContract } from "../../core/catalog/db/contracts.ts";
import { AppError } from "../../platform/api/errors.ts";
import { text as shown } from "../../platform/api/fields.ts";
import { type Act, act, type Definition } from "../act.ts";
import { withAuditEntry } from "../with-audit-entry.ts";

type None = Record<never, never>;
type Move = { id: string; status: keyof typeof CONTRACT_MOVES };
type Words = Pick<Definition<None, Move, object>, "title" | "about" | "confirm" | "next">;

/** A change of a contract's status. It is refused if CONTRACT_MOVES does not allow it. */
const move = (verb: string, status: Move["status"], words: Words): Act<None, Move> =>
  act<None, Move>({
    ...words,
    name: `contract ${verb}`,
    on: "contract",
    role: "operator",
    scope: "issuer",
    examples: ["ctr_…"],
    fields: {},
    refusals: ["wrong_status"],
    result: z.object({ id: shown("The contract's id."), status: shown("Its status.", status) }),
    async run(ctx, id) {
      await withAuditEntry(ctx, { type: "ReferrerContract", id }, async (tx) => {
        if (await moveContract(tx, { id, status, allowed: CONTRACT_MOVES[status] })) return;
        const found = await findContractStatus(tx, id);
        if (found === null) throw new AppError("not_found", `There is no contract ${id}.`);
        throw new AppError("wrong_status", (t) =>
          t("inDetail.contractCannotBecome", { wanted: status, status: found }),
        );
      });
      return { id, status };
    },
    said: ({ id }) => `Contract ${id} is ${status}.`,
  });

export const acceptContract = move("accept", "Active", {
  title: "Accept the contract",
  about: "The referrer has accepted: links can be made.",
  next: ({ id }) => `voucherctl link create --contract ${id} --product ID`,
});

export const declineContract = move("decline", "Declined", {
  title: "Decline the contract",
  about: "The referrer has declined the contract.",
});

export const endContract = move("end", "Ended", {
  title: "End the contract",
  about: "Its links stop working at once, for good.",
  confirm: { loss: (_ctx, id) => `This permanently ends contract ${id} and its links.` },
});
