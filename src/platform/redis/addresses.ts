import { BARE_SEPARATOR, hasBareSeparator } from "../address-forms.ts";

/** REDIS_URL cannot be used. The message continues a sentence that begins with the variable's name. */
export class BadRedisUrl extends Error {}

/**
 * Reads the addresses of one Redis server, or of nodes of one Redis Cluster: `redis://user:password@a:6379,b:6379`, or
 * complete addresses separated by commas.
 * @throws BadRedisUrl
 */
export function parseRedisUrl(text: string): URL[] {
  const urls = text
    .trim()
    .split(/\s*,\s*(?=rediss?:\/\/)/i)
    .flatMap(splitHosts)
    .map(toUrl);
  if (urls.length > 1) assertClusterAddresses(urls);
  return urls;
}

/** Adds the encoded password to addresses without a user. */
export function withPassword(redisUrl: string, password: string | null): string {
  if (password === null) return redisUrl;
  return redisUrl.replace(/(rediss?:\/\/)(?![^/?#]*@)/gi, (start) => `${start}:${encodeURIComponent(password)}@`);
}

/** Marks a single address whose server has said that it is a node of a Redis Cluster. */
const CLUSTER_MARK = "#cluster";

/**
 * Whether the servers are nodes of a Redis Cluster: REDIS_URL has several addresses, or {@link markAsCluster} has
 * marked the only one.
 */
export function namesCluster(redisUrl: string): boolean {
  const [first, ...others] = parseRedisUrl(redisUrl);
  return others.length > 0 || first?.hash === CLUSTER_MARK;
}

/**
 * Marks a single address whose server turned out to be a node of a Redis Cluster.
 * @throws BadRedisUrl when the address has parts that a cluster does not support.
 */
export function markAsCluster(redisUrl: string): string {
  const urls = parseRedisUrl(redisUrl);
  assertClusterAddresses(urls);
  return urls.length > 1 ? redisUrl : `${redisUrl.trim()}${CLUSTER_MARK}`;
}

function assertClusterAddresses(urls: readonly URL[]): void {
  const [first] = urls as [URL];
  for (const url of urls) {
    if (url.hostname === "") throw new BadRedisUrl("has an address without a host");
    if (url.protocol !== first.protocol) throw new BadRedisUrl("mixes redis: and rediss:; all nodes need the same");
    if (url.username !== first.username || url.password !== first.password) {
      throw new BadRedisUrl("has addresses with different users or passwords; all nodes need the same");
    }
    if (!["", "/", "/0"].includes(url.pathname)) {
      throw new BadRedisUrl(`names database ${url.pathname.slice(1)}; a Redis Cluster has only database 0`);
    }
    if (url.search !== "" || url.hash !== "") {
      throw new BadRedisUrl("has parameters, which are allowed with one Redis server only");
    }
  }
}

/** Splits `redis://user@a,b/0` into `redis://user@a/0` and `redis://user@b/0`. */
function splitHosts(text: string): string[] {
  const [, beforeHosts = "", hosts = "", afterHosts = ""] =
    /^(rediss?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/i.exec(text) ?? [];
  if (!hosts.includes(",")) return [text];
  return hosts.split(",").map((host) => beforeHosts + host.trim() + afterHosts);
}

function toUrl(text: string): URL {
  if (hasBareSeparator(text)) throw new BadRedisUrl(BARE_SEPARATOR);
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^rediss?:$/.test(url.protocol)) {
    throw new BadRedisUrl(
      "must be an address like redis://host:6379/0, or redis://host:6379,host:6379 for a Redis Cluster",
    );
  }
  try {
    decodeURIComponent(url.username + url.password);
  } catch {
    throw new BadRedisUrl(BARE_SEPARATOR);
  }
  return url;
}
