import type { FoundVoucher } from "../core/look-up/api/voucher-history.ts";

/** A count with separators: `1,000,000`. */
export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

/** `1 voucher`, `1,000 vouchers`. */
export function pluralize(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

/** How and why a voucher is suspended. Null if it is not. */
export function saySuspension({ suspension }: Pick<FoundVoucher, "suspension">): string | null {
  if (suspension === null) return null;
  const how = suspension.by === "batch" ? "with its batch" : "individually";
  return suspension.reason === null ? how : `${how}: ${suspension.reason}`;
}

/** A time in UTC, to the second: `2027-12-31 23:59:59`. */
export function formatUtc(moment: Date): string {
  return moment.toISOString().slice(0, 19).replace("T", " ");
}

/** A time with its zone: `2027-12-31 23:59:59 UTC`. */
export function formatUtcWithZone(moment: Date): string {
  return `${formatUtc(moment)} UTC`;
}
