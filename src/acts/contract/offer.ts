import { insertContract } from "../../core/catalog/db/contracts.ts";
import { newId } from "../../core/voucher/ids.ts";
import { act } from "../act.ts";
import { optional, subject, time } from "../fields.ts";
import { refuseIfTaken, withAuditEntry } from "../with-audit-entry.ts";
import { formatUtcWithZone } from "../words.ts";

export const offerContract = act({
  name: "contract offer",
  on: "brand",
  creates: "contract",
  role: "operator",
  scope: "issuer",
  title: "Offer a referrer a contract",
  about: "It has no effect until it is accepted.",
  examples: ["--brand brd_… --user bob", "--brand brd_… --user bob --ends-at 2027-12-31"],
  fields: {
    user: subject("User", { hint: "The subject of the referrer's tokens." }),
    endsAt: optional(time("Ends at", "end", { future: true })),
  },
  refused: "user",
  refusals: ["already_exists"],
  async run(ctx, brandId, { user: userId, endsAt }) {
    const id = newId("ctr");
    const offered = withAuditEntry(ctx, { type: "ReferrerContract", id }, (tx) =>
      insertContract(tx, { id, brandId, userId, endsAt }),
    );
    await refuseIfTaken("referrer_contracts_one_open", (t) => t("inDetail.exists.contract"), offered);
    return { id };
  },
  said: ({ id }, { user, endsAt }) =>
    `Offered contract ${id} to ${user}.${endsAt === null ? "" : ` It ends at ${formatUtcWithZone(endsAt)}.`}`,
  next: ({ id }) => `voucherctl contract accept ${id}`,
});
