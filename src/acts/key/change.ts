import { changeKeyCaps, findKeyCaps, type KeyCaps, type ListedKey } from "../../core/keys/db/api-keys.ts";
import { AppError } from "../../platform/api/errors.ts";
import { act } from "../act.ts";
import { limit } from "../fields.ts";
import { withAuditEntry } from "../with-audit-entry.ts";
import { CAPS } from "./create.ts";

export const changeKey = act({
  name: "key change",
  on: "key",
  role: "admin",
  title: "Limit what the API key may redeem in a day",
  about: "A limit counts from now on, with what the key has redeemed today. Empty: stays as it is. none: no limit.",
  examples: ["key_… --max-per-day 200 --max-amount-per-day 5000", "key_… --max-per-day none"],
  fields: { maxPerDay: limit(CAPS.maxPerDay), maxAmountPerDayUsd: limit(CAPS.maxAmountPerDayUsd) },
  rules({ maxPerDay, maxAmountPerDayUsd }, refuse) {
    if (maxPerDay !== null || maxAmountPerDayUsd !== null) return;
    refuse("maxPerDay", (nameOf) => () => `${nameOf("maxPerDay")} or ${nameOf("maxAmountPerDayUsd")} is required`);
  },
  async present(db, id) {
    const caps = await findKeyCaps(db, id);
    const typed = (cap: number | null = null) => (cap === null ? "none" : String(cap));
    return { maxPerDay: typed(caps?.maxPerDay), maxAmountPerDayUsd: typed(caps?.maxAmountPerDayUsd) };
  },
  run: (ctx, id, wanted) =>
    withAuditEntry(ctx, { type: "ApiKey", id }, async (tx) => {
      const now = await findKeyCaps(tx, id);
      if (now === null) throw new AppError("not_found", `There is no key ${id}.`);
      const caps = {
        maxPerDay: changed(wanted.maxPerDay, now.maxPerDay),
        maxAmountPerDayUsd: changed(wanted.maxAmountPerDayUsd, now.maxAmountPerDayUsd),
      };
      await changeKeyCaps(tx, id, caps);
      return { id, ...caps };
    }),
  said: ({ id, ...caps }) => `Key ${id} may redeem ${sayCaps(caps)}.`,
});

const changed = (wanted: number | "none" | null, now: number | null) => (wanted === "none" ? null : (wanted ?? now));

export const hasCap = ({ maxPerDay, maxAmountPerDayUsd }: KeyCaps) => maxPerDay !== null || maxAmountPerDayUsd !== null;

/** What a key with a daily limit has redeemed today, as text. */
export function sayToday({ redemptionsToday, amountTodayUsd }: Pick<ListedKey, "redemptionsToday" | "amountTodayUsd">) {
  return `${redemptionsToday} for $${amountTodayUsd.toFixed(2)} today`;
}

/** The daily limits of a key, as text. */
export function sayCaps({ maxPerDay, maxAmountPerDayUsd }: KeyCaps): string {
  const limits = [
    maxPerDay !== null && `at most ${maxPerDay} ${maxPerDay === 1 ? "voucher" : "vouchers"} a day`,
    maxAmountPerDayUsd !== null && `at most $${maxAmountPerDayUsd.toFixed(2)} a day`,
  ].filter((one) => one !== false);
  return limits.length === 0 ? "without a daily limit" : limits.join(" and ");
}
