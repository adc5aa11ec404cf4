/** A subject and what it received, which only one subject may have: a redeem code, a ticket or a voucher. */
export interface Receipt {
  subject: string;
  receipt: string;
}

/**
 * Compares answers with the database. The database may contain results whose answers the client did not wait for.
 * @returns the first contradiction, or null.
 */
export function findContradiction(answered: readonly Receipt[], stored: readonly Receipt[]): string | null {
  const receiptOf = new Map<string, string>();
  const issued = new Set<string>();
  for (const { subject, receipt } of stored) {
    if (receiptOf.has(subject)) return `${subject} is in the database twice`;
    if (issued.has(receipt)) return `${receipt} was issued twice`;
    receiptOf.set(subject, receipt);
    issued.add(receipt);
  }
  const seen = new Set<string>();
  for (const { subject, receipt } of answered) {
    if (seen.has(subject)) return `${subject} was answered twice`;
    seen.add(subject);
    const found = receiptOf.get(subject) ?? "nothing";
    if (found !== receipt) return `${subject} was answered ${receipt}, the database contains ${found}`;
  }
  return null;
}
