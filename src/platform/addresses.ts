import { isIP, isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * Parses an IPv6 address without a zone. The URL parser first rewrites the last four bytes in hex, because ipaddr.js
 * takes `::203.0.113.7` for an IPv4-mapped address.
 */
export function parseIPv6(text: string): ipaddr.IPv6 {
  return ipaddr.IPv6.parse(new URL(`http://[${text}]`).hostname.slice(1, -1));
}

/** Whether a text is an address or a network. */
export function isNetwork(text: string): boolean {
  const [address = "", bits, ...rest] = text.split("/");
  if (isIP(address) === 0 || rest.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return false;
  return Number(bits ?? 0) <= (isIPv6(address) ? 128 : 32);
}

/** Whether the text is an address or a network whose bits after the prefix are 0, as Postgres requires of `cidr`. */
export function isExactNetwork(text: string): boolean {
  if (!isNetwork(text) || !text.includes("/")) return isNetwork(text);
  const [address = "", bits] = text.split("/");
  if (!isIPv6(address)) return ipaddr.IPv4.networkAddressFromCIDR(text).toString() === ipaddr.parse(address).toString();
  const parsed = parseIPv6(address).toString();
  return ipaddr.IPv6.networkAddressFromCIDR(`${parsed}/${bits}`).toString() === parsed;
}

/** The only IPv6 network with public addresses. */
const PUBLIC_IPV6 = ipaddr.parseCIDR("2000::/3");
/** The address of host services for Azure's virtual machines. It looks like a public address. */
const AZURE_HOST = "168.63.129.16";

/** An IPv6 network whose addresses contain IPv4 addresses, and the possible offsets of the IPv4 bytes. */
interface Carrier {
  network: ReturnType<typeof ipaddr.parseCIDR>;
  layouts: number[][];
}

const LAST_FOUR = [12, 13, 14, 15];
const CARRIERS: Carrier[] = [
  // IPv4-mapped (RFC 4291).
  { network: ipaddr.parseCIDR("::ffff:0:0/96"), layouts: [LAST_FOUR] },
  // NAT64: in networks without IPv4, name servers put IPv4 addresses into this network (RFC 6052, RFC 6147).
  { network: ipaddr.parseCIDR("64:ff9b::/96"), layouts: [LAST_FOUR] },
  // NAT64 with a network's own prefix of 48, 56, 64 or 96 bits (RFC 8215).
  {
    network: ipaddr.parseCIDR("64:ff9b:1::/48"),
    layouts: [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], LAST_FOUR],
  },
  // 6to4 (RFC 3056).
  { network: ipaddr.parseCIDR("2002::/16"), layouts: [[2, 3, 4, 5]] },
];

/**
 * 0.0.0.0/8 and 240.0.0.0/4, which are not routed. An address with a prefix of 96 bits, such as `64:ff9b:1:fffe::`,
 * gives an unrouted address if it is read in a wrong layout.
 */
const NOWHERE = /^(0|2[45]\d)\./;

/** Whether a text is a public IP address. If the address contains an IPv4 address, that address decides. */
export function isPublicAddress(text: string): boolean {
  if (isIPv4(text)) return text !== AZURE_HOST && ipaddr.IPv4.parse(text).range() === "unicast";
  if (!isIPv6(text) || text.includes("%")) return false;
  const address = parseIPv6(text);
  const carrier = CARRIERS.find(({ network }) => address.match(network));
  if (carrier === undefined) return address.range() === "unicast" && address.match(PUBLIC_IPV6);
  const bytes = address.toByteArray();
  const inside = carrier.layouts.map((offsets) => offsets.map((offset) => bytes[offset]).join("."));
  // The network's layout is unknown. So at least one layout must give a public address, and every other layout a public
  // or an unrouted address.
  return inside.some(isPublicAddress) && inside.every((each) => NOWHERE.test(each) || isPublicAddress(each));
}
