import { typeidUnboxed } from "typeid-js";

/** The prefix of an id, which tells what the id names. */
export type IdPrefix = "org" | "brd" | "prd" | "bat" | "vch" | "key" | "rsv" | "lst" | "ctr";

/**
 * Makes a TypeID: the prefix, an underscore and a UUIDv7 in 26 lower-case base32 symbols (https://github.com/jetify-com/typeid).
 * Later ids sort later in byte order. Callers must treat ids as opaque.
 */
export function newId(prefix: IdPrefix): string {
  return typeidUnboxed(prefix);
}

/** Whether a `codeOrTicket` is a ticket. Check this before normalising a code, which removes the difference. */
export function isTicket(codeOrTicket: string): boolean {
  return codeOrTicket.startsWith("rsv_");
}
