import { typeidUnboxed } from "typeid-js";

/** What an id names; the prefix of the id says it. */
export type IdPrefix = "org" | "brd" | "prd" | "bat" | "vch" | "key" | "rsv" | "lst" | "ctr";

/**
 * Makes a TypeID: the prefix, an underscore and a UUIDv7 in 26 lower-case base32 symbols (https://github.com/jetify-com/typeid).
 * Ids made later sort later in byte order. Treat them as opaque.
 */
export function newId(prefix: IdPrefix): string {
  return typeidUnboxed(prefix);
}

/** Whether a `codeOrTicket` is a ticket. Tested before a code is normalised, which would drop the difference. */
export function isTicket(codeOrTicket: string): boolean {
  return codeOrTicket.startsWith("rsv_");
}
