import packageJson from "../../../package.json" with { type: "json" };
import type { ApiContext } from "../../open-api.ts";
import { ASSETS, type Asset } from "./assets.ts";
import { type Html, html } from "./html.ts";

/** What a page needs to build URLs. */
export type Site = Pick<ApiContext["config"], "basePath" | "baseUrl" | "storefrontUrl">;

/** The path of the guide for partners, below the base path. */
export const GUIDE_PATH = "/docs/guide";

/** The path, below the base path, of the page whose form opens a voucher's history. */
export const CHECK_PATH = "/check";

/** One page of the site. */
interface PageContent {
  /** Shown in the browser's tab, before the name of the service. */
  title: string;
  /** One sentence for previews of a shared link. */
  description?: string;
  main: Html;
  scripts?: readonly Asset[];
  /** After the style of all pages, or the one that replaces it. */
  styles?: readonly Asset[];
  style?: Asset;
}

/** The path of an asset. */
export function assetPath(site: Site, asset: Asset): string {
  return `${site.basePath}/assets/${asset.fileName}`;
}

/** A complete page: the shared frame around `main`. */
export function layOut(
  site: Site,
  { title, description, main, scripts = [], styles = [], style = ASSETS.style }: PageContent,
): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Partner Voucher API</title>
${description === undefined ? null : renderPreview(title, description)}
<link rel="icon" type="image/svg+xml" href="${assetPath(site, ASSETS.icon)}">
${[style, ...styles].map((each) => html`<link rel="stylesheet" href="${assetPath(site, each)}">`)}
${scripts.map((script) => html`<script type="module" src="${assetPath(site, script)}"></script>`)}
</head>
<body>
<a class="hidden" href="#main">Skip to content</a>
<header class="site">
<a class="brand" href="${site.basePath}/"><img src="${assetPath(site, ASSETS.icon)}" alt="" width="28" height="28">Partner Voucher API</a>
<nav aria-label="Site"><a href="${site.basePath}${GUIDE_PATH}">Guide</a><a href="${site.basePath}/docs">API reference</a></nav>
</header>
<main id="main">
${main}
</main>
<footer><p>Partner Voucher API, version ${packageJson.version}</p></footer>
</body>
</html>
`;
}

/** The title and description that messengers and search engines show for a page (https://ogp.me). */
function renderPreview(title: string, description: string): Html {
  return html`<meta name="description" content="${description}">
<meta property="og:title" content="${title}">
<meta property="og:description" content="${description}">`;
}

/** The notice on each page about a sandbox voucher. */
export const SANDBOX_NOTICE = html`<p class="notice" id="sandbox"><strong>Sandbox.</strong> This is a test voucher. It has no value.</p>`;
