// Verifies the history of the voucher CODE.
import { createHash } from "node:crypto";

const { API, KEY, CODE } = process.env;
// A redirect would send the key to another address.
const options = { headers: { "X-Api-Key": KEY }, redirect: "error", cache: "no-store" };
const response = await fetch(`${API}/partner/vouchers/${CODE}/events`, options);
if (!response.ok) {
  console.error(`Not verified, status ${response.status}: ${await response.text()}`);
  process.exit(1);
}
const { entityId, events } = await response.json();
const ERASING = "voucher.instance.erased";
/** Writes canonical JSON (RFC 8785). */
const canonical = (value) => {
  if (typeof value === "string" && !value.isWellFormed()) throw new Error("a lone surrogate");
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${canonical(name)}:${canonical(value[name])}`)}}`;
};
/** The object in a payload; an empty one for a text that is not canonical. */
const parse = (text) => {
  try {
    const said = JSON.parse(text);
    return canonical(said) === text ? said : {};
  } catch {
    return {};
  }
};
// An event without payload was erased by a later one, which says so.
const named = events.map((event) => {
  const { sealStatus, eventType, payload } = Object(event);
  const said = eventType === ERASING && sealStatus !== "Pending" ? parse(payload) : null;
  return said?.eventType === ERASING ? said.data?.erasedSequences : null;
});
let previous = "0".repeat(64);
let afterPending = false;
for (const [index, event] of events.entries()) {
  const number = index + 1;
  // A missing member counts as null.
  const { sealStatus, recordHash = null, previousHash = null, payload = null, erasedBy, ...beside } = Object(event);
  const { sequence, eventType = null, code = null, occurredAt = null } = beside;
  const { actorConnectedId = null, actorIsEmployee = null } = beside;
  const isErasedAt = (list, at) =>
    at > index && Array.isArray(list) && list.includes(number) && at + 1 === (erasedBy ?? at + 1);
  const isEarlier = (erased) => Number.isInteger(erased) && erased > 0 && erased < number;
  let isTrue = sequence === number;
  let word = "ok";
  if (sealStatus === "Pending") {
    isTrue &&= payload === null && recordHash === null && previousHash === null;
    word = "pending";
    afterPending = true;
  } else {
    isTrue &&= !afterPending && previousHash === previous && typeof recordHash === "string";
    if (payload === null) {
      isTrue &&= named.some(isErasedAt) && /^[0-9a-f]{64}$/.test(recordHash);
      word = "ok, erased";
    } else {
      isTrue &&= typeof payload === "string" && createHash("sha256").update(payload).digest("hex") === recordHash;
      const entity = { v: 1, entityType: "VoucherInstance", entityId };
      const known = { sequence, eventType, code, occurredAt, previousHash, actorConnectedId, actorIsEmployee };
      isTrue &&= canonical({ ...parse(payload), ...entity, ...known }) === payload;
      isTrue &&= eventType !== ERASING || (Array.isArray(named[index]) && named[index].every(isEarlier));
    }
    previous = recordHash;
  }
  console.log(number, eventType, isTrue ? word : "BROKEN");
  if (!isTrue) process.exit(1);
}
