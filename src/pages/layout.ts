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

interface PageContent {
  /** Shown in the browser's tab, before the name of the service. */
  title: string;
  /** One sentence for the previews of a shared link. */
  description?: string;
  /** The canonical address of the page, for previews. */
  address?: string;
  main: Html;
  scripts?: readonly Asset[];
  /** `style` replaces the style of all pages. `styles` are loaded after it. */
  styles?: readonly Asset[];
  style?: Asset;
  /** English by default. */
  locale?: Locale;
  /** Whether the page links to the start page, the guide and the reference, which are for developers. */
  forDevelopers?: boolean;
  /** The page's path, which menus highlight. */
  path?: string;
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
  const { locale = ENGLISH, face, forDevelopers = true, path } = more;
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
    ? renderSiteHeader(site, t, forDevelopers, path)
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

function renderSiteHeader(site: Site, t: Locale["t"], forDevelopers: boolean, path: string | undefined): Html {
  const { basePath } = site;
  const name = html`<img src="${assetPath(site, ASSETS.icon)}" alt="" width="28" height="28">${SERVICE}`;
  if (!forDevelopers) return html`<header class="site"><p class="brand">${name}</p></header>`;
  const links = [
    [basePath + GUIDE_PATH, t("frame.guide")],
    [`${basePath}/docs`, t("frame.reference")],
  ] as const;
  return html`<header class="site">
<a class="brand" href="${basePath}/">${name}</a>
${renderMenu(t("frame.site"), links, path)}
</header>`;
}

/**
 * A link in a menu or in breadcrumbs. Highlights the link to the page at the path `shown`, and the link to its section.
 */
export function linkInMenu(path: string, label: Html | string, shown?: string, section?: string): Html {
  const mark = path === shown ? html` aria-current="page"` : path === section ? html` aria-current="true"` : null;
  return html`<a href="${path}"${mark}>${label}</a>`;
}

/**
 * A menu that highlights the page at the path `shown`. The links of a menu `ofSections` have pages below them, except
 * the first, which is their overview.
 */
export function renderMenu(
  name: string,
  links: readonly (readonly [path: string, label: string])[],
  shown?: string,
  ofSections = false,
): Html {
  const isShown = ([path]: readonly [string, string], at: number) => at > 0 && shown?.startsWith(`${path}/`);
  const section = ofSections ? links.find(isShown)?.[0] : undefined;
  const items = links.map(([path, label]) => html`${linkInMenu(path, label, shown, section)} `);
  return html`<nav${ofSections ? html` class="ops"` : null} aria-label="${name}">${items}</nav>`;
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
