import packageJson from "../../package.json" with { type: "json" };
import type { BrandFace } from "../core/catalog/db/brand-faces.ts";
import type { Config } from "../platform/config.ts";
import { ASSETS, type Asset } from "./assets.ts";
import { linkColour, renderFace } from "./brand-files.ts";
import { type Html, html } from "./html.ts";
import { ENGLISH, type Locale } from "./locale.ts";

/** The settings from which a page builds URLs. */
export type Site = Pick<Config, "basePath" | "baseUrl" | "storefrontUrl">;

const SERVICE = "Partner Voucher API";

/** The path of the guide for partners, below the base path. */
export const GUIDE_PATH = "/docs/guide";

/** The path, below the base path, of the page whose form opens a voucher's history. */
export const CHECK_PATH = "/check";

/** The content of one page of the site. */
interface PageContent {
  /** Shown in the browser's tab, before the name of the service. */
  title: string;
  /** One sentence for the previews of a shared link. */
  description?: string;
  /** The canonical address of the page, for previews. */
  address?: string;
  main: Html;
  scripts?: readonly Asset[];
  /** Additional style sheets, loaded after the style of all pages or its replacement. */
  styles?: readonly Asset[];
  style?: Asset;
  /** English by default. */
  locale?: Locale;
  /** Whether the page links to the guide and the reference for developers. */
  forDevelopers?: boolean;
  /** The brand whose logo and colour the page shows in place of the service's. */
  face?: BrandFace;
}

/** The path of an asset. */
export function assetPath(site: Site, asset: Asset): string {
  return `${site.basePath}/assets/${asset.fileName}`;
}

/** A complete page: `main` in the frame that all pages share. */
export function layOut(
  site: Site,
  { title, description, address, main, scripts = [], styles = [], style = ASSETS.style, ...more }: PageContent,
): Html {
  const { locale = ENGLISH, face, forDevelopers = true } = more;
  const { t } = locale;
  return html`<!doctype html>
<html lang="${locale.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${face === undefined ? `${title} · ${SERVICE}` : title}</title>
${description === undefined ? null : renderPreview(title, face?.brand ?? SERVICE, description, address)}
<link rel="icon" type="image/svg+xml" href="${assetPath(site, ASSETS.icon)}">
${[style, ...styles].map((each) => html`<link rel="stylesheet" href="${assetPath(site, each)}">`)}
${face === undefined ? null : linkColour(site, face)}
${scripts.map((script) => html`<script type="module" src="${assetPath(site, script)}"></script>`)}
</head>
<body>
<a class="hidden" href="#main">${t("frame.skip")}</a>
${
  face === undefined
    ? renderSiteHeader(site, t, forDevelopers)
    : html`<header class="face">${renderFace(site, face)}</header>`
}
<main id="main">
${main}
</main>
${face === undefined ? html`<footer><p>${t("frame.version", { version: packageJson.version })}</p></footer>` : null}
</body>
</html>
`;
}

function renderSiteHeader(site: Site, t: Locale["t"], forDevelopers: boolean): Html {
  return html`<header class="site">
<a class="brand" href="${site.basePath}/"><img src="${assetPath(site, ASSETS.icon)}" alt="" width="28" \
height="28">${SERVICE}</a>
${
  forDevelopers
    ? html`<nav aria-label="${t("frame.site")}"><a href="${site.basePath}${GUIDE_PATH}">${t("frame.guide")}</a>\
<a href="${site.basePath}/docs">${t("frame.reference")}</a></nav>`
    : null
}
</header>`;
}

/** The title and description that messengers and search engines show for a page (https://ogp.me). */
function renderPreview(title: string, siteName: string, description: string, address?: string): Html {
  return html`<meta name="description" content="${description}">
<meta property="og:title" content="${title}">
<meta property="og:description" content="${description}">
<meta property="og:type" content="website">
<meta property="og:site_name" content="${siteName}">
${address === undefined ? null : html`<meta property="og:url" content="${address}">`}`;
}

/** The notice on each page about a sandbox voucher. */
export function renderSandboxNotice({ markup }: Locale = ENGLISH): Html {
  return html`<p class="notice" id="sandbox">${markup("frame.sandbox")}</p>`;
}
