import { TypeID, typeidUnboxed } from "typeid-js";

/** The prefix of an id. It shows the kind of entity. */
type IdPrefix = "org" | "brd" | "prd" | "bat" | "vch" | "key" | "rsv" | "lst" | "ctr" | "whk" | "tst" | "alr" | "opr";

/** The last two symbols of voucher and reservation ids, reserved for the number of a deployment. Always 0 today. */
const DEPLOYMENT = "00";

/**
 * Makes a TypeID (https://github.com/jetify-com/typeid). Ids sort, byte by byte, by the millisecond of their creation
 * on the processes' clocks.
 */
export function newId(prefix: IdPrefix): string {
  const id = typeidUnboxed(prefix);
  return prefix === "vch" || prefix === "rsv" ? id.slice(0, -DEPLOYMENT.length) + DEPLOYMENT : id;
}

/** The lowest id, in byte order, that a process could have made at this time. */
export function firstIdAt(prefix: IdPrefix, time: Date): string {
  const ms = time.getTime().toString(16).padStart(12, "0");
  return TypeID.fromUUID(prefix, `${ms.slice(0, 8)}-${ms.slice(8)}-0000-0000-000000000000`).toString();
}

/** Whether a `codeOrTicket` is a ticket. Check this before normalising, which makes the prefix upper case. */
export function isTicket(codeOrTicket: string): boolean {
  return codeOrTicket.startsWith("rsv_");
}
