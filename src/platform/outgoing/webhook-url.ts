import { isIP } from "node:net";
import { isPublicAddress } from "../addresses.ts";

/** The ports that are allowed without `allowPrivate`. The empty port is the scheme's default. */
const PORTS = ["", "443", "8443"];
/** Names that are never public, because they have no dot or are reserved for local use. */
const LOCAL_NAME = /^[^.]*$|\.(localhost|local|internal|home\.arpa)$/;

/** The host of a URL as `node:net` accepts it: IPv6 without brackets, and a name without a dot at its end. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

/** The problems that a partner's URL may have. The API has a sentence for each. */
type UrlProblem = "noUrl" | "notHttps" | "urlWithUser" | "urlWithFragment" | "urlPort" | "urlHost";

/**
 * The problem with a partner's URL, or null. `allowPrivate` allows http, any port and any host. Resolves no names: the
 * addresses of a name are checked when a request is sent.
 */
export function findUrlProblem(text: string, allowPrivate: boolean): UrlProblem | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//.test(text) || /[\s\p{Cc}]/u.test(text)) return "noUrl";
  if (url.protocol !== "https:" && !allowPrivate) return "notHttps";
  if (url.username !== "" || url.password !== "") return "urlWithUser";
  if (text.includes("#")) return "urlWithFragment";
  if (allowPrivate) return null;
  if (!PORTS.includes(url.port)) return "urlPort";
  const host = hostOf(url);
  const isPublic = isIP(host) === 0 ? !LOCAL_NAME.test(host) : isPublicAddress(host);
  return isPublic ? null : "urlHost";
}
