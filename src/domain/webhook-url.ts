import { BlockList, isIP } from "node:net";

/** IPv4 networks that are not the public internet: the IANA special-purpose registry, multicast and reserved networks. */
const SPECIAL_IPV4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  // The host services of Azure's virtual machines, at an otherwise public address.
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];
/** The only IPv6 network of public addresses. IPv4-mapped, NAT64, unique local, link-local and multicast addresses are outside. */
const PUBLIC_IPV6 = "2000::/3";
/** Special-purpose networks within it: Teredo and other protocols, documentation, 6to4, AS112. */
const SPECIAL_IPV6 = ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"];

const special = blockListOf([...SPECIAL_IPV4, ...SPECIAL_IPV6]);
const publicIpv6 = blockListOf([PUBLIC_IPV6]);

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of networks) {
    const [network = "", bits] = entry.split("/");
    list.addSubnet(network, Number(bits), isIP(network) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/** Whether a text is an IP address of the public internet. */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 4) return !special.check(address, "ipv4");
  return version === 6 && publicIpv6.check(address, "ipv6") && !special.check(address, "ipv6");
}

/** The ports that are allowed without `allowPrivate`. The empty port is the scheme's default. */
const PORTS = ["", "443", "8443"];
/** Names that are never public: without a dot, or reserved for local use. */
const LOCAL_NAME = /^[^.]*$|\.(localhost|local|internal|home\.arpa)$/;

/** The host of a URL as `node:net` takes it: without the brackets of an IPv6 address and the dot at the end of a name. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

/**
 * What is wrong with a partner's URL, as the end of a sentence that begins with the field's name; null when requests may be sent there. The
 * addresses of a host name are checked when a request is sent. `allowPrivate` also allows http, any port and any host.
 */
export function findUrlProblem(text: string, allowPrivate: boolean): string | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//.test(text) || /[\s\p{Cc}]/u.test(text))
    return "must be an address like https://shop.example.com/hooks";
  if (url.protocol !== "https:" && !allowPrivate) return "must begin with https://";
  if (url.username !== "" || url.password !== "") return "must not have a user name or a password";
  if (text.includes("#")) return "must not have a fragment";
  if (allowPrivate) return null;
  if (!PORTS.includes(url.port)) return "must have port 443 or 8443";
  const host = hostOf(url);
  const isPublic = isIP(host) === 0 ? !LOCAL_NAME.test(host) : isPublicAddress(host);
  return isPublic ? null : "must have a public host";
}
