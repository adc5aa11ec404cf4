/** A count with separators: `1,000,000`. */
export function showCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 voucher`, `1,000 vouchers`. */
export function showNumberOf(count: number, noun: string): string {
  return `${showCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** US dollars: `$1,234.50`. */
export function showDollars(amount: number): string {
  const [dollars, cents] = amount.toFixed(2).split(".");
  return `$${showCount(Number(dollars))}.${cents}`;
}

/** A moment in UTC, to the second: `2027-12-31 23:59:59`. */
export function showMoment(moment: Date): string {
  return moment.toISOString().slice(0, 19).replace("T", " ");
}

/** A moment in UTC that says so. */
export function showMomentUtc(moment: Date): string {
  return `${showMoment(moment)} UTC`;
}

/** Rounded lengths of time: `45 s`, `3 min`, `5 h`, `12 d`. */
export function showDuration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}
