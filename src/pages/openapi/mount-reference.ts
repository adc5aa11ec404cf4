import type { Router } from "express";
import { type DescribedSettings, getRoute, mount, type Route } from "../../platform/http/endpoint.ts";
import type { LimitingAddresses } from "../../platform/http/middleware/rate-limit.ts";
import { ASSETS } from "../assets.ts";
import { allDocuments, renderDocument, type ServedDocument } from "../documents.ts";
import { type Html, html } from "../html.ts";
import { assetPath, layOut, type Site } from "../layout.ts";
import { headersOf, pageHeaders } from "../page-headers.ts";
import { searchRoute } from "../search-documents.ts";
import { serveFile, servePage } from "../serve-file.ts";
import { packageRoutes } from "../serve-packages.ts";
import { type DescribedParts, describeApi } from "./describe-api.ts";

interface ReferenceDeps extends LimitingAddresses {
  config: Site & DescribedSettings;
}

/** Mounts `/openapi.json`, the documents for partners, and the page `/docs`, which can send requests. */
export function mountReference(router: Router, deps: ReferenceDeps, parts: DescribedParts): void {
  const { config } = deps;
  const documents = allDocuments(parts.documents);
  const routes = [
    getRoute(
      "/openapi.json",
      serveFile("application/json; charset=utf-8", () => `${JSON.stringify(describeApi(parts, config))}\n`),
    ),
    getRoute(
      "/docs",
      referenceHeaders,
      servePage(() => renderReferencePage(config)),
    ),
    searchRoute(deps, documents),
    ...documents.map((document) => documentRoute(config, document, documents)),
    ...packageRoutes(config, documents),
  ];
  for (const route of routes) mount(router, deps, route);
}

function renderReferencePage(site: Site): Html {
  const description = `${site.basePath}/openapi.json`;
  return layOut(site, {
    title: "API reference",
    path: `${site.basePath}/docs`,
    style: ASSETS.referenceStyle,
    main: html`<p class="notice" id="elsewhere" hidden>This page is not part of <a></a>, the address of the API. Open \
that address to try requests.</p>
<noscript><p class="notice">This page needs JavaScript. <a href="${description}">openapi.json</a> has the same content \
for programs.</p></noscript>
<div id="reference" data-description="${description}"></div>
<script src="${assetPath(site, ASSETS.swaggerScript)}" defer></script>
<script src="${assetPath(site, ASSETS.referenceScript)}" type="module"></script>`,
  });
}

/** Serves Markdown as a page, and other files unchanged. */
function documentRoute(site: Site, document: ServedDocument, all: readonly ServedDocument[]): Route {
  const { path, sentAs, text } = document;
  if (sentAs === null)
    return getRoute(
      path,
      pageHeaders,
      servePage(() => renderDocument(site, document, all)),
    );
  const send = serveFile(sentAs, () => text);
  return getRoute(path, pageHeaders, (request, response, next) => {
    // Browsers download the receipt verifier. They cannot show it, because the Content-Security-Policy of the pages
    // forbids its inline script.
    if (sentAs === ".html") response.attachment("receipt-verifier.html");
    return send(request, response, next);
  });
}

/** The reference loads scripts only from this origin, and sends requests only to it. */
const referenceHeaders = headersOf({
  // The style sheet of Swagger UI contains its arrows as data URLs.
  "img-src": ["'self'", "data:"],
  "connect-src": ["'self'"],
});
