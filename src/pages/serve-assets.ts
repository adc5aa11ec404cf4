import { extname } from "node:path";
import type { RequestHandler } from "express";
import { AppError } from "../platform/api/errors.ts";
import type { Config } from "../platform/config.ts";
import { getRoute, type Route } from "../platform/http/endpoint.ts";
import { TEXT } from "../platform/http/respond.ts";
import { ASSETS } from "./assets.ts";
import { serveFile } from "./serve-file.ts";

/** One year. A changed file gets a new name, so caches never serve an old version. */
const MAX_AGE_SECONDS = 31_536_000;

/** The headers of a file whose content never changes under its name. */
export const FOR_EVER = {
  "Cache-Control": `public, max-age=${MAX_AGE_SECONDS}, immutable`,
  "X-Content-Type-Options": "nosniff",
};

/** The handler of each asset, by file name. All applications of a process share them. */
const FILES = new Map<unknown, RequestHandler>(
  Object.values(ASSETS).map(({ fileName, content }) => [
    fileName,
    serveFile(extname(fileName), () => content, FOR_EVER["Cache-Control"]),
  ]),
);

/** Styles, scripts and images of the pages. */
export const assetsRoute = getRoute("/assets/:fileName", (request, response, next) => {
  const serve = FILES.get(request.params.fileName);
  if (serve === undefined) throw new AppError("not_found");
  return serve(request, response, next);
});

/** How long a copy of security.txt is valid. Milliseconds. */
const CONTACT_VALID_MS = 180 * 86_400_000;

/** Small files at the addresses where browsers and crawlers look for them. */
export function wellKnownRoutes({
  config: { baseUrl, securityContact },
}: {
  config: Pick<Config, "baseUrl" | "securityContact">;
}): Route[] {
  return [
    getRoute(
      "/favicon.ico",
      serveFile(".svg", () => ASSETS.icon.content),
    ),
    // Crawlers must fetch a page to see that it asks not to be indexed, so this file allows all pages.
    getRoute(
      "/robots.txt",
      serveFile(TEXT, () => "User-agent: *\nAllow: /$\nAllow: /docs\nAllow: /integrity/\nAllow: /r/\nDisallow: /\n"),
    ),
    getRoute("/.well-known/security.txt", (_request, response) => {
      if (securityContact === null) throw new AppError("not_found");
      const expires = new Date(Date.now() + CONTACT_VALID_MS).toISOString();
      const canonical = `${baseUrl}/.well-known/security.txt`;
      response.set({ "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff" });
      response.type(TEXT).send(`Contact: ${securityContact}\nExpires: ${expires}\nCanonical: ${canonical}\n`);
    }),
  ];
}
