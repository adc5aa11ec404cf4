import { ASSETS } from "../pages/assets.ts";
import { type Html, html } from "../pages/html.ts";
import { assetPath, GUIDE_PATH, renderVersion, type Site } from "../pages/layout.ts";

/** The page on which Swagger UI shows the OpenAPI document, in the browser. */
export function renderReferencePage(site: Site): Html {
  const description = `${site.basePath}/openapi.json`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API reference · Partner Voucher API</title>
<link rel="icon" type="image/svg+xml" href="${assetPath(site, ASSETS.icon)}">
<link rel="stylesheet" href="${assetPath(site, ASSETS.swaggerStyle)}">
<link rel="stylesheet" href="${assetPath(site, ASSETS.referenceStyle)}">
<script src="${assetPath(site, ASSETS.swaggerScript)}" defer></script>
<script src="${assetPath(site, ASSETS.referenceScript)}" type="module"></script>
</head>
<body>
<header>
<a class="start" href="${site.basePath}/"><img src="${assetPath(site, ASSETS.icon)}" alt="" width="28" height="28">Start page</a>
<a class="guide" href="${site.basePath}${GUIDE_PATH}">Guide for partners</a>
<p class="notice" id="elsewhere" hidden>This page is not part of <a></a>, the address of the API. Open that address to try requests.</p>
</header>
<noscript><p class="notice">This page needs JavaScript. <a href="${description}">openapi.json</a> has the same content for programs.</p></noscript>
<div id="reference" data-description="${description}"></div>
<footer>${renderVersion()}</footer>
</body>
</html>
`;
}
