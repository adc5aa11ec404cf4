// Adds up the redemptions from FROM to TO. Needs voucher-client.mjs in the same folder.
import { voucherClient } from "./voucher-client.mjs";

process.on("uncaughtException", ({ message }) => {
  console.error(message); // A sentence instead of a stack.
  process.exit(1);
});
const vouchers = voucherClient(process.env.API, process.env.KEY);
let query = { from: process.env.FROM, to: process.env.TO, limit: 1000 };
let [count, cents] = [0, 0];
for (;;) {
  const { redemptions, nextCursor, completeUntil } = await vouchers.redemptions(query);
  for (const redemption of redemptions) {
    // Here, compare with your order of redemption.externalRef.
    count += 1;
    cents += Math.round(redemption.discountPriceUsd * 100);
  }
  if (nextCursor === null) break;
  if (redemptions.length === 0)
    throw new Error(`Not complete: the list is final until ${completeUntil}. Try again later.`);
  query = { cursor: nextCursor, limit: 1000 };
}
console.log(`${count} redemptions, ${(cents / 100).toFixed(2)} USD`);
