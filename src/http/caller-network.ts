import { isIPv4, isIPv6 } from "node:net";

/** What stands for every address that is none: a proxy's `unknown`, or a connection that is gone. */
const NO_ADDRESS = "none";
/** ::ffff:0:0/96, as URLs write it: an IPv4 caller on a socket that listens for both. */
const MAPPED = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;

/**
 * The network that a caller is limited by: the address itself for IPv4, mapped into IPv6 or not, and the /64 for IPv6, of which one
 * subscriber has all addresses. The same network has one spelling.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return NO_ADDRESS;
  if (isIPv4(address)) return address;
  const [withoutZone = ""] = address.split("%");
  if (!isIPv6(withoutZone)) return NO_ADDRESS;
  // The URL parser has the one spelling of RFC 5952, without dotted quads.
  const canonical = new URL(`http://[${withoutZone}]`).hostname.slice(1, -1);
  const mapped = MAPPED.exec(canonical);
  if (mapped !== null) return toIPv4(mapped[1] ?? "", mapped[2] ?? "");
  const [head = "", tail] = canonical.split("::");
  const [first, last] = [groupsOf(head), groupsOf(tail ?? "")];
  const zeros = Array<string>(8 - first.length - last.length).fill("0");
  return `${[...first, ...zeros, ...last].slice(0, 4).join(":")}::/64`;
}

function groupsOf(text: string): string[] {
  return text === "" ? [] : text.split(":");
}

function toIPv4(high: string, low: string): string {
  const bytes = Buffer.from(high.padStart(4, "0") + low.padStart(4, "0"), "hex");
  return bytes.join(".");
}
