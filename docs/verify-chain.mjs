// Verifies the history of the voucher CODE.
import { createHash } from "node:crypto";

const { API, KEY, CODE } = process.env;
const response = await fetch(`${API}/partner/vouchers/${CODE}/events`, { headers: { "X-Api-Key": KEY } });
const { events } = await response.json();
let previous = "0".repeat(64);
for (const [index, event] of events.entries()) {
  const name = `${index + 1} ${event.eventType}`;
  if (event.sealStatus === "Pending") {
    console.log(name, "pending");
    continue;
  }
  const hash = createHash("sha256").update(event.payload, "utf8").digest("hex");
  const said = JSON.parse(event.payload);
  const linked = said.sequence === index + 1 && said.previousHash === previous && event.previousHash === previous;
  if (hash !== event.recordHash || !linked) {
    console.log(name, "BROKEN");
    process.exit(1);
  }
  console.log(name, "ok");
  previous = hash;
}
