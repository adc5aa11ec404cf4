import { operatorRoutes } from "../../../src/console/mount-operator-pages.ts";
import { SCOPES } from "../../../src/core/keys/api-keys.ts";
import { each } from "../../../src/open/api-parts.ts";
import { ENDPOINTS } from "../../../src/open/endpoints.ts";
import type { ApiContext } from "../../../src/open/open-api.ts";
import { WING_ACTS } from "../../../src/open/wing-acts.ts";
import { OPS_TOKEN } from "../../support/browse.ts";
import { makeOffer } from "../../support/marketplace.ts";
import { exchange, type RawReply } from "../../support/raw-http.ts";
import { makeKey } from "../../support/supply.ts";
import type { useService } from "../../support/use-service.ts";
import { signUser } from "../../support/user-tokens.ts";
import { ROUTES } from "./routes.ts";

/** Combining marks of two classes in turn, which take longest to normalise: 35 ms for 16 kB. */
const MARKS = "\u0344\u0316";
/** Bytes of text in a body (maximum 16 KiB), and in a path or a header (maximum 16 KiB together). */
const BODY_BYTES = 15_000;
const HEAD_BYTES = 14_000;

const HEADERS = [
  ...["X-Api-Key", "Authorization", "Accept", "Accept-Language", "Accept-Encoding", "X-Request-Id", "Cookie"],
  ...["Content-Type", "Content-Encoding", "If-None-Match", "Origin", "Sec-Fetch-Site", "X-Forwarded-For"],
  ...["Traceparent", "Baggage", "User-Agent", "Host", "X-Jwt"],
];
/** Elements that fill a header with a list. Each is so short that the service does not refuse it for its length. */
const LIST_ENTRIES: Record<string, string> = {
  Accept: "text/a;q=0.1,",
  "Accept-Language": "de-a;q=0.1,",
  "Accept-Encoding": "gzip;q=0.1,",
  "X-Forwarded-For": "1.2.3.4:5,",
  "If-None-Match": '"a",',
  Authorization: "Basic ",
};

const repeat = (text: string, bytes: number) => text.repeat(Math.floor(bytes / Buffer.byteLength(text)));
const inHead = repeat(MARKS, HEAD_BYTES);
const encoded = repeat("%CD%84%CC%96", HEAD_BYTES);
const inBody = repeat(MARKS, BODY_BYTES);

/** What authenticates the requests, and the ids of existing entities by the path's collection. */
interface Sender {
  api: { url: string; ctx: ApiContext };
  key: string;
  /** The portal accepts only a key that cannot redeem. */
  portalKey: string;
  userToken: string;
  opsToken: string;
  ids: Record<string, string>;
}

/** Makes a key with all scopes, a user, an operator, and an entity of each collection. */
export async function makeSender(service: ReturnType<typeof useService>): Promise<Sender> {
  const { api, db, partner, issuer } = service;
  const [{ id: voucherId }, offer] = [await service.issue(), await makeOffer(db, 1)];
  const { key } = await makeKey(db, partner.organizationId, { scopes: [...SCOPES] });
  const { key: portalKey } = await makeKey(db, partner.organizationId, { scopes: ["voucher.read"] });
  return {
    api,
    key,
    portalKey,
    userToken: await signUser(issuer, "hostile-user"),
    opsToken: OPS_TOKEN,
    ids: {
      organizations: partner.organizationId,
      products: offer.productId,
      listings: offer.listingId,
      vouchers: voucherId,
    },
  };
}

export interface LongText {
  /** For example `POST /partner/vouchers/redeem, body externalRef`. */
  name: string;
  send(): Promise<RawReply>;
}

const basic = (password: string) => `Basic ${Buffer.from(`someone:${password}`).toString("base64")}`;

/**
 * Makes a request for every parameter, field and header of every route. Routes and fields come from the tables that
 * mount them.
 */
export function longTexts(sender: Sender): LongText[] {
  const { api } = sender;
  const operated = operatorRoutes({ ...api.ctx, config: { ...api.ctx.config } }, each("operatorPages"), WING_ACTS);
  const ofOperators = operated.map(({ method, path }): [string, string] => [
    method === "all" ? "GET" : method.toUpperCase(),
    `/ops${path}`,
  ]);
  const routes = new Map([...ROUTES, ...ofOperators].map(([method, path]) => [`${method} ${path}`, [method, path]]));
  return [...routes.values()].flatMap(([method = "", path = ""]) => placesOf(sender, method, path));
}

function placesOf(sender: Sender, method: string, path: string): LongText[] {
  const endpoint = ENDPOINTS.find((one) => one.path === path && one.method.toUpperCase() === method);
  const { url } = sender.api;
  const idOf = (at: number) => sender.ids[path.split("/")[at - 1] ?? ""] ?? "none_0";
  const pathWith = (long?: string) =>
    path
      .split("/")
      .map((part, at) => (!/^[:*]/.test(part) ? part : part === long ? encoded : idOf(at)))
      .join("/");
  const authorization = path.startsWith("/ops")
    ? basic(sender.opsToken)
    : path.startsWith("/portal")
      ? basic(sender.portalKey)
      : `Bearer ${sender.userToken}`;
  const usual = {
    Host: "x",
    "X-Api-Key": sender.key,
    Authorization: authorization,
    Accept: "*/*",
    Connection: "close",
  };
  const request = (name: string, target: string, more: Record<string, string> = {}, body = ""): LongText => ({
    name: `${method} ${path}, ${name}`,
    send() {
      const headers = { ...usual, ...more, ...(body !== "" && { "Content-Length": String(Buffer.byteLength(body)) }) };
      const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}`);
      return exchange(url, Buffer.from([`${method} ${target} HTTP/1.1`, ...lines, "", body].join("\r\n")));
    },
  });
  const inPath = path
    .split("/")
    .filter((part) => /^[:*]/.test(part))
    .map((part) => request(`path ${part}`, pathWith(part)));
  const inQuery = [...Object.keys(endpoint?.query?.shape ?? {}), "any", "words", "day", "from", "externalRef"].map(
    (name) => request(`query ${name}`, `${pathWith()}?${name}=${encoded}`),
  );
  const inHeaders = HEADERS.flatMap((name) => [
    request(`header ${name}`, pathWith(), { [name]: inHead }),
    ...(name in LIST_ENTRIES
      ? [request(`list ${name}`, pathWith(), { [name]: repeat(LIST_ENTRIES[name] as string, HEAD_BYTES) })]
      : []),
  ]);
  const fields = ["GET", "HEAD", "DELETE"].includes(method) ? [] : fieldsOf(path, endpoint);
  const ofForm = /^\/(ops|portal|check)/.test(path);
  const inFields = fields.map((name) => {
    // The other fields are valid, so that the request reaches rules for several fields.
    const others = { ...VALID, [name]: inBody };
    // Shorter, because a form's encoding makes texts longer.
    return ofForm
      ? request(`form ${name}`, pathWith(), FORM, `${new URLSearchParams({ [name]: repeat(MARKS, BODY_BYTES / 3) })}`)
      : request(`body ${name}`, pathWith(), JSON_BODY, JSON.stringify(others).slice(0, 16_384));
  });
  return [...inPath, ...inQuery, ...inHeaders, ...inFields];
}

const FORM = { "Content-Type": "application/x-www-form-urlencoded", Origin: "http://x" };
const JSON_BODY = { "Content-Type": "application/json" };
const VALID = { code: "7Q4K-9MZX-2HTB-W8RC", externalRef: "order-1", ticket: null, token: null };

/** Form fields that no table of schemas contains. */
const FORM_FIELDS = ["words", "voucher", "name", "reason", "code", "product", "ticket", "label", "url", "validUntil"];

function fieldsOf(path: string, endpoint: (typeof ENDPOINTS)[number] | undefined): string[] {
  if (endpoint?.body !== undefined) return Object.keys(endpoint.body.shape);
  return path.startsWith("/ops") || path.startsWith("/portal") || path === "/check" ? FORM_FIELDS : [];
}
