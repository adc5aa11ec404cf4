// several-vouchers.mjs
import { voucherClient } from "./voucher-client.mjs";

process.on("uncaughtException", ({ message }) => {
  console.error(message); // A sentence instead of a stack.
  process.exit(1);
});
const vouchers = voucherClient(process.env.API, process.env.KEY);
const order = { number: "shop-10006", items: process.env.CODES.split(" ").map((code) => ({ code })) };
const refused = (error) => {
  if (error.status !== 409 && error.code !== "voucher_not_found") throw error;
  return error;
};

/** Reserves every voucher, or none. */
async function reserveAll({ items }) {
  for (const item of items) {
    const { ticket, message } = await vouchers.reserve(item.code).catch(refused);
    if (ticket && !items.some((other) => other.ticket === ticket)) {
      item.ticket = ticket;
      continue;
    }
    for (const other of items) if (other.ticket) await vouchers.release(other.ticket, "another voucher was refused");
    return message ?? "This voucher was entered twice.";
  }
  return null;
}

const problem = await reserveAll(order);
if (problem !== null) console.log(problem);
else {
  // Store the order with its tickets, and take the payment. After a crash or an OutcomeUnknown, continue here.
  for (const [index, { code, ticket }] of order.items.entries()) {
    const externalRef = `${order.number}-${index + 1}`;
    let answer = await vouchers.redeem({ ticket, externalRef }).catch(refused);
    if (answer.code === "reservation_ended") answer = await vouchers.redeem({ code, externalRef }).catch(refused);
    // Deliver what was redeemed, and refund what was not.
    console.log(`${externalRef}: ${answer.redeemCode ?? answer.message}`);
  }
}
