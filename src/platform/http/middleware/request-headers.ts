import { isIPv4, isIPv6 } from "node:net";
import { parse } from "basic-auth";
import type { Request, RequestHandler } from "express";
import { parseIPv6 } from "../../addresses.ts";
import { AppError } from "../../api/errors.ts";

/** Matches `203.0.113.7:51234`, `[2001:db8::1]:51234` and `[2001:db8::1]`. The first or second group is the address. */
const ADDRESS_AND_PORT = /^ *(?:(\d+(?:\.\d+){3}):\d+|\[([\da-f]*:[\da-f]*:[\da-f:.]*)\](?::\d+)?) *$/i;

/** Removes the ports that some proxies add in X-Forwarded-For. Express does not accept an address with a port. */
export const dropForwardedPorts: RequestHandler = ({ headers }, _response, next) => {
  const forwarded = headers["x-forwarded-for"];
  if (typeof forwarded === "string") headers["x-forwarded-for"] = withoutPorts(forwarded);
  next();
};

/** A list of addresses without their ports. Other entries are left unchanged. */
export function withoutPorts(forwarded: string): string {
  const entries = forwarded.split(",");
  return entries.map((entry) => entry.replace(ADDRESS_AND_PORT, "$1$2")).join(",");
}

/** Stands for every missing or invalid address: a closed connection has none, and a proxy may send `unknown`. */
const NO_ADDRESS = "none";

/**
 * The network whose limit a caller uses: an IPv4 address, even if it is mapped into IPv6, or an IPv6 /64 network. Each
 * network has only one spelling.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return NO_ADDRESS;
  if (isIPv4(address)) return address;
  const [withoutZone = ""] = address.split("%");
  if (!isIPv6(withoutZone)) return NO_ADDRESS;
  const parsed = parseIPv6(withoutZone);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  const groups = parsed.parts.slice(0, 4).map((group) => group.toString(16));
  return `${groups.join(":")}::/64`;
}

/** Refuses an HTTP/1.1 request without Host, as RFC 9112, section 3.2, requires. */
export const requireHost: RequestHandler = (request, _response, next) => {
  if (request.httpVersion === "1.1" && request.headers.host === undefined) {
    throw new AppError("invalid_http");
  }
  next();
};

/**
 * Maximum length of headers with preferences, twice what browsers send. Comparing a list of thousands of entries with
 * what the service offers would take milliseconds. Bytes.
 */
const PREFERENCES_MAX = [
  ["accept", 500],
  ["accept-language", 250],
  ["accept-encoding", 250],
] as const;

/** Corrects preferences that some programs derive from a locale, as `de_DE.UTF-8`, or from the type of a response. */
const SPELLINGS = [
  ["accept-language", /\.[a-z][\w-]*|@\w+/gi, ""],
  ["accept-language", /_/g, "-"],
  ["accept", /\s*;\s*charset=[^;,]*/gi, ""],
] as const;

/** Removes preferences that are too long. The caller is then treated like one without preferences. */
export const boundPreferences: RequestHandler = ({ headers }, _response, next) => {
  for (const [name, max] of PREFERENCES_MAX) {
    // The length counts bytes, because Node reads a header as Latin-1.
    if (String(headers[name] ?? "").length > max) delete headers[name];
  }
  for (const [name, spelling, meant] of SPELLINGS) {
    if (headers[name] !== undefined) headers[name] = String(headers[name]).replaceAll(spelling, meant);
  }
  next();
};

/** The name and password of HTTP Basic (RFC 7617), or null. Trims spaces, because people paste them. */
export function basicCredentials(request: Request): { name: string; password: string } | null {
  const given = parse(request.get("authorization") ?? "");
  return given === undefined ? null : { name: given.name.trim(), password: given.pass.trim() };
}

/** Headers for ranges and conditional writes. */
const IGNORED = ["range", "if-range", "if-match", "if-unmodified-since"] as const;

/**
 * Removes the headers that make Express answer 206, 412 or 416, which the API does not document. Keeps `If-None-Match`
 * with entity tags.
 */
export const ignoreConditions: RequestHandler = ({ headers }, _response, next) => {
  for (const name of IGNORED) if (headers[name] !== undefined) delete headers[name];
  if (headers["if-none-match"]?.includes("*")) delete headers["if-none-match"];
  next();
};
