/** A count with separators: `1,000,000`. */
export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

/** `1 voucher`, `1,000 vouchers`. */
export function pluralize(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}

/** US dollars: `$1,234.50`. */
export function formatUsd(amount: number): string {
  return amount.toLocaleString("en-US", { style: "currency", currency: "USD" });
}

/** A time in UTC, to the second: `2027-12-31 23:59:59`. */
export function formatUtc(moment: Date): string {
  return moment.toISOString().slice(0, 19).replace("T", " ");
}

/** A time with its zone: `2027-12-31 23:59:59 UTC`. */
export function formatUtcWithZone(moment: Date): string {
  return `${formatUtc(moment)} UTC`;
}

/** A rounded duration: `45 s`, `3 min`, `5 h`, `12 d`. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}
