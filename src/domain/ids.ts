import { typeidUnboxed } from "typeid-js";

/** The prefix of an id, which shows the kind of entity. */
type IdPrefix = "org" | "brd" | "prd" | "bat" | "vch" | "key" | "rsv" | "lst" | "ctr" | "whk" | "tst";

/** The last two symbols (ten bits) of voucher and reservation ids, reserved for the number of the deployment that has the row. Always 0 today. */
const DEPLOYMENT = "00";

/** Makes a TypeID (https://github.com/jetify-com/typeid). Byte order is the order of creation by the processes' clocks, to the millisecond. */
export function newId(prefix: IdPrefix): string {
  const id = typeidUnboxed(prefix);
  return prefix === "vch" || prefix === "rsv" ? id.slice(0, -DEPLOYMENT.length) + DEPLOYMENT : id;
}

/** Whether a `codeOrTicket` is a ticket. Check this before normalising, which writes the prefix in upper case. */
export function isTicket(codeOrTicket: string): boolean {
  return codeOrTicket.startsWith("rsv_");
}
