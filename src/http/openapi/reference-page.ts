import { ASSETS } from "../pages/assets.ts";
import { type Html, html } from "../pages/html.ts";
import { assetPath, layOut, type Site } from "../pages/layout.ts";

/** The page on which Swagger UI shows the OpenAPI document, in the browser. */
export function renderReferencePage(site: Site): Html {
  const description = `${site.basePath}/openapi.json`;
  return layOut(site, {
    title: "API reference",
    style: ASSETS.referenceStyle,
    main: html`<p class="notice" id="elsewhere" hidden>This page is not part of <a></a>, the address of the API. Open that address to try requests.</p>
<noscript><p class="notice">This page needs JavaScript. <a href="${description}">openapi.json</a> has the same content for programs.</p></noscript>
<div id="reference" data-description="${description}"></div>
<script src="${assetPath(site, ASSETS.swaggerScript)}" defer></script>
<script src="${assetPath(site, ASSETS.referenceScript)}" type="module"></script>`,
  });
}
