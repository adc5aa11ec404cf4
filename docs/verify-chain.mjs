// Verifies the history of the voucher CODE.
import { createHash } from "node:crypto";

const { API, KEY, CODE } = process.env;
// A redirect would send the key to another address.
const options = { headers: { "X-Api-Key": KEY }, redirect: "error" };
const response = await fetch(`${API}/partner/vouchers/${CODE}/events`, options);
const { entityId, events } = await response.json();
// An event without payload was erased by a later one, which says so.
const erasures = [];
for (const { sealStatus, eventType, payload, sequence } of events) {
  if (sealStatus !== "Sealed" || eventType !== "voucher.instance.erased" || payload === null) continue;
  const said = JSON.parse(payload);
  if (said.eventType !== eventType) continue;
  for (const erased of said.data.erasedSequences) erasures.push({ by: sequence, erased });
}
let previous = "0".repeat(64);
let afterPending = false;
for (const [index, event] of events.entries()) {
  const number = index + 1;
  const name = `${number} ${event.eventType}`;
  if (event.sealStatus === "Pending") {
    const hasSeal = [event.payload, event.recordHash, event.previousHash].some((part) => part !== null);
    if (hasSeal || event.sequence !== number) {
      console.log(name, "BROKEN");
      process.exit(1);
    }
    console.log(name, "pending");
    afterPending = true;
    continue;
  }
  const isNamed = erasures.some(({ by, erased }) => erased === number && by > number);
  const isErased = event.payload === null && isNamed && /^[0-9a-f]{64}$/.test(event.recordHash);
  const hash = isErased ? event.recordHash : createHash("sha256").update(String(event.payload), "utf8").digest("hex");
  const said = isErased ? event : JSON.parse(event.payload ?? "{}");
  const linked = [event, said].every(({ sequence, previousHash }) => sequence === number && previousHash === previous);
  const sameType = said.eventType === event.eventType;
  const erasesLater = erasures.some(({ by, erased }) => by === number && !(erased < number));
  const sameVoucher = isErased || said.entityId === entityId;
  const isTrue = hash === event.recordHash && linked && sameType && sameVoucher;
  if (afterPending || !isTrue || erasesLater) {
    console.log(name, "BROKEN");
    process.exit(1);
  }
  console.log(name, isErased ? "ok, erased" : "ok");
  previous = hash;
}
