import { hash } from "node:crypto";
import { extname } from "node:path";
import compression from "compression";
import type { RequestHandler, Response } from "express";
import { AppError } from "../../contract/errors.ts";
import type { ApiContext } from "../../open-api.ts";
import { getRoute, type Route } from "../endpoint.ts";
import { limitAddress } from "../middleware/rate-limit.ts";
import { ASSETS } from "./assets.ts";

/** Compresses responses. Only for routes whose responses are the same for everyone: compressed secrets can be guessed by their length. */
export const compress: RequestHandler = compression();

/** Sends a public file, with a media type or an extension. A caller that has it already gets 304. */
export function sendFile(response: Response, contentType: string, content: string | Buffer, maxAge = "no-cache"): void {
  response.setHeader("Cache-Control", maxAge);
  response.setHeader("ETag", `W/"${hash("sha256", content, "base64url")}"`);
  response.setHeader("X-Content-Type-Options", "nosniff");
  response.type(contentType).send(content);
}

/** One year. A changed file gets a new name. */
const MAX_AGE_SECONDS = 31_536_000;

/** Styles, scripts and images of the pages. */
export const assetsRoute = getRoute("/assets/:fileName", compress, (request, response) => {
  const asset = Object.values(ASSETS).find(({ fileName }) => fileName === request.params.fileName);
  if (asset === undefined) throw new AppError("not_found");
  sendFile(response, extname(asset.fileName), asset.content, `public, max-age=${MAX_AGE_SECONDS}, immutable`);
});

/** How long a copy of security.txt is valid. Milliseconds. */
const CONTACT_VALID_MS = 180 * 86_400_000;

/** Small files at the addresses where browsers and crawlers look for them. */
export function wellKnownRoutes(ctx: Pick<ApiContext, "config" | "limits">): Route[] {
  const { baseUrl, securityContact } = ctx.config;
  const text = "text/plain; charset=utf-8";
  const file = (path: string, send: (response: Response) => void) =>
    getRoute(path, limitAddress(ctx), (_request, response) => send(response));
  return [
    file("/favicon.ico", (response) => sendFile(response, ".svg", ASSETS.icon.content)),
    // The pages of vouchers are for whoever has their address.
    file("/robots.txt", (response) =>
      sendFile(response, text, "User-agent: *\nAllow: /$\nAllow: /docs\nDisallow: /\n"),
    ),
    file("/.well-known/security.txt", (response) => {
      if (securityContact === null) throw new AppError("not_found");
      const expires = new Date(Date.now() + CONTACT_VALID_MS).toISOString();
      const canonical = `${baseUrl}/.well-known/security.txt`;
      sendFile(response, text, `Contact: ${securityContact}\nExpires: ${expires}\nCanonical: ${canonical}\n`);
    }),
  ];
}
