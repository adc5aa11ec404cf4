import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** The only IPv6 network of public addresses. */
const PUBLIC_IPV6 = ipaddr.parseCIDR("2000::/3");
/** The host services of Azure's virtual machines, at an otherwise public address. */
const AZURE_HOST = "168.63.129.16";

/** Whether a text is an IP address of the public internet. */
export function isPublicAddress(text: string): boolean {
  if (isIP(text) === 0 || text === AZURE_HOST) return false;
  const address = ipaddr.parse(text);
  return address.range() === "unicast" && (address.kind() === "ipv4" || address.match(PUBLIC_IPV6));
}

/** The ports that are allowed without `allowPrivate`. The empty port is the scheme's default. */
const PORTS = ["", "443", "8443"];
/** Names that are never public: without a dot, or reserved for local use. */
const LOCAL_NAME = /^[^.]*$|\.(localhost|local|internal|home\.arpa)$/;

/** The host of a URL as `node:net` takes it: without the brackets of an IPv6 address and the dot at the end of a name. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

// The addresses of a host name are checked when a request is sent.
/** What is wrong with a partner's URL, as the end of a sentence; null for none. `allowPrivate` also allows http, any port and any host. */
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
