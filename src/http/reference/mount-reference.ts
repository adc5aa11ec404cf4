import type { RequestHandler, Router } from "express";
import helmet from "helmet";
import type { ApiContext } from "../../context.ts";
import type { Endpoint } from "../endpoint.ts";
import { sendPage } from "../pages/offer-page.ts";
import { mount } from "../route.ts";
import { limitAddress } from "../spend-limit.ts";
import { describeApi } from "./describe-api.ts";
import { renderReferencePage } from "./reference-page.ts";

/** Mounts the API's description at `/openapi.json` and a page at `/docs` that shows it and tries it. */
export function mountReference(router: Router, ctx: ApiContext, endpoints: readonly Endpoint[]): void {
  const { config } = ctx;
  let description: string | undefined;
  mount(router, {
    path: "/openapi.json",
    methods: {
      get: [
        limitAddress(ctx),
        (_request, response) => {
          // Made when it is first asked for: few processes ever are.
          description ??= JSON.stringify(describeApi(endpoints, config.baseUrl));
          response.setHeader("Cache-Control", "no-cache");
          response.type("json").send(description);
        },
      ],
    },
  });
  const page = renderReferencePage(config);
  mount(router, {
    path: "/docs",
    methods: { get: [pageHeaders, limitAddress(ctx), (_request, response) => sendPage(response, 200, page)] },
  });
}

/** The page runs scripts of this origin alone, and calls nobody but this API. */
const pageHeaders: RequestHandler = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      "default-src": ["'none'"],
      "script-src": ["'self'"],
      "style-src": ["'self'"],
      // The style sheet of Swagger UI carries its arrows in itself.
      "img-src": ["'self'", "data:"],
      "connect-src": ["'self'"],
      "form-action": ["'none'"],
      "base-uri": ["'none'"],
      "frame-ancestors": ["'none'"],
    },
  },
  xFrameOptions: { action: "deny" },
  originAgentCluster: false,
  strictTransportSecurity: false,
});
