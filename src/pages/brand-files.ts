import { extname } from "node:path";
import type pg from "pg";
import type { Bulkhead } from "../core/callers/bulkhead.ts";
import { type BrandFace, findLogo } from "../core/catalog/db/brand-faces.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Config } from "../platform/config.ts";
import { getRoute, pathId, type Route } from "../platform/http/endpoint.ts";
import { visitorOf } from "../platform/http/middleware/caller-signal.ts";
import { type Html, html } from "./html.ts";
import { FOR_EVER } from "./serve-assets.ts";

type Place = Pick<Config, "basePath">;

/** Links the style sheet with the brand's colour. The Content-Security-Policy permits no style in the page. */
export function linkColour({ basePath }: Place, { colour }: BrandFace): Html | null {
  if (colour === null) return null;
  return html`<link rel="stylesheet" href="${basePath}/colours/${colour.slice(1)}.css">`;
}

/** The brand's logo, if it has one, and its name. */
export function renderFace({ basePath }: Place, { brand, logo }: BrandFace): Html {
  const image = logo === null ? null : html`<img class="logo" src="${basePath}/logos/${logo}" alt="">`;
  return html`<p class="brand">${image}<bdi>${brand}</bdi></p>`;
}

/** Whom a customer of a brand can ask: the brand, with the storefront's address if there is one. */
export function nameContact({ storefrontUrl }: Pick<Config, "storefrontUrl">, brand: string): Html {
  const name = html`<bdi>${brand}</bdi>`;
  if (storefrontUrl === null) return name;
  const { origin, host } = new URL(storefrontUrl);
  return html`${name} (<a href="${origin}/">${host}</a>)`;
}

/** The brand's colour, and black or white for text on it, as CSS. */
export function renderColours(colour: string): string {
  return `:root {\n  --brand: ${colour};\n  --on-brand: ${isLight(colour) ? "#000000" : "#ffffff"};\n}\n`;
}

/** Whether black has more contrast to the colour than white has. The better of the two always has more than 4.5:1. */
function isLight(colour: string): boolean {
  // The relative luminance of WCAG 2.2. Black and white have the same contrast to a colour whose luminance is 0.179.
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179;
}

/** The logos and colours of brands. The content under a name never changes. */
export function brandRoutes({ pool, publicReads }: { pool: pg.Pool; publicReads: Bulkhead<"visitor"> }): Route[] {
  return [
    getRoute("/logos/:name", async (request, response) => {
      const name = pathId(request.params.name);
      const content = await publicReads(visitorOf(request, response), () => findLogo(pool, name));
      if (content === null) throw new AppError("not_found");
      response.set(FOR_EVER).type(extname(name)).send(content);
    }),
    getRoute("/colours/:name", (request, response) => {
      const [, colour] = /^([0-9a-f]{6})\.css$/.exec(String(request.params.name)) ?? [];
      if (colour === undefined) throw new AppError("not_found");
      response
        .set(FOR_EVER)
        .type("css")
        .send(renderColours(`#${colour}`));
    }),
  ];
}
