import type { Router } from "express";
import type { ApiContext } from "../../open-api.ts";
import { type Endpoint, getRoute, mount, type Route } from "../endpoint.ts";
import { limitAddress } from "../middleware/rate-limit.ts";
import { ASSETS } from "../pages/assets.ts";
import { DOCUMENTS, renderDocument, type ServedDocument } from "../pages/documents.ts";
import { type Html, html } from "../pages/html.ts";
import { assetPath, layOut, type Site } from "../pages/layout.ts";
import { sendPage } from "../pages/offer-page.ts";
import { headersOf, pageHeaders } from "../pages/page-headers.ts";
import { compress, sendFile } from "../pages/serve-assets.ts";
import { packageRoutes } from "../pages/serve-packages.ts";
import { describeApi } from "./describe-api.ts";

/** Mounts the OpenAPI document at `/openapi.json`, a page at `/docs` that shows it and can send requests, and the documents for partners. */
export function mountReference(router: Router, ctx: ApiContext, endpoints: readonly Endpoint[]): void {
  const { config } = ctx;
  let description: string | undefined;
  const routes = [
    getRoute("/openapi.json", limitAddress(ctx), compress, (_request, response) => {
      // Generated on the first request, so that it does not delay the start.
      description ??= `${JSON.stringify(describeApi(endpoints, config))}\n`;
      sendFile(response, "application/json; charset=utf-8", description);
    }),
    getRoute("/docs", referenceHeaders, limitAddress(ctx), (_request, response) =>
      sendPage(response, 200, renderReferencePage(config)),
    ),
    ...DOCUMENTS.map((document) => documentRoute(ctx, document)),
    ...packageRoutes(ctx),
  ];
  for (const route of routes) mount(router, route);
}

/** The page on which Swagger UI shows the OpenAPI document, in the browser. */
function renderReferencePage(site: Site): Html {
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

/** Serves a document. Markdown becomes a page, rendered on the first request. Other files are sent unchanged. */
function documentRoute(ctx: ApiContext, document: ServedDocument): Route {
  let page: Html | undefined;
  return getRoute(document.path, pageHeaders, limitAddress(ctx), compress, (_request, response) => {
    // The receipt verifier is downloaded, not shown: the Content-Security-Policy of the pages forbids its inline script.
    if (document.sentAs === ".html") response.attachment("receipt-verifier.html");
    if (document.sentAs !== null) return sendFile(response, document.sentAs, document.text);
    page ??= renderDocument(ctx.config, document);
    sendPage(response, 200, page);
  });
}

/** The reference loads scripts from this origin only, and sends requests to it only. */
const referenceHeaders = headersOf({
  // Swagger UI's style sheet contains its arrows as data URLs.
  "img-src": ["'self'", "data:"],
  "connect-src": ["'self'"],
});
