import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { RequestHandler, Router } from "express";
import helmet from "helmet";
import type { ApiContext } from "../../context.ts";
import { AppError } from "../../domain/errors.ts";
import type { Endpoint } from "../endpoint.ts";
import { mount } from "../route.ts";
import { describeApi } from "./describe-api.ts";

const INDEX = fileURLToPath(new URL("./page/index.html", import.meta.url));

const { resolve } = createRequire(import.meta.url);

/** What the page loads, by the last part of its address. */
const FILES = new Map([
  ["start.js", fileURLToPath(new URL("./page/start.js", import.meta.url))],
  ["page.css", fileURLToPath(new URL("./page/page.css", import.meta.url))],
  ["icon.svg", fileURLToPath(new URL("../pages/static/icon.svg", import.meta.url))],
  ["swagger-ui.css", resolve("swagger-ui-dist/swagger-ui.css")],
  ["swagger-ui-bundle.js", resolve("swagger-ui-dist/swagger-ui-bundle.js")],
]);

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
  // Other answers of this origin do not ask for it, and browsers want all or none to.
  originAgentCluster: false,
  // Whether a whole host speaks https only is for whoever terminates TLS to say.
  strictTransportSecurity: false,
});

/** Mounts the API's description at `/openapi.json` and a page at `/docs` that shows it and tries it. */
export function mountReference(router: Router, { config }: ApiContext, endpoints: readonly Endpoint[]): void {
  let description: string | undefined;
  mount(router, {
    path: "/openapi.json",
    methods: {
      get: [
        (_request, response) => {
          // Made when it is first asked for: few processes ever are.
          description ??= JSON.stringify(describeApi(endpoints, config.baseUrl));
          response.setHeader("Cache-Control", "no-cache");
          response.type("json").send(description);
        },
      ],
    },
  });
  mount(router, {
    path: "/docs",
    methods: {
      get: [
        pageHeaders,
        (request, response) => {
          // The page's links are relative to its address without a slash behind it.
          if (request.path.endsWith("/")) response.redirect(308, "../docs");
          else response.sendFile(INDEX, SEND_OPTIONS);
        },
      ],
    },
  });
  mount(router, {
    path: "/docs/:file",
    methods: {
      get: [
        pageHeaders,
        (request, response) => {
          const file = FILES.get(String(request.params.file));
          if (file === undefined) throw new AppError("not_found", "There is nothing at this address.");
          response.sendFile(file, SEND_OPTIONS);
        },
      ],
    },
  });
}

/** Browsers ask each time whether a file is still the same. A directory above may begin with a dot. */
const SEND_OPTIONS = { headers: { "Cache-Control": "no-cache" }, cacheControl: false, dotfiles: "allow" } as const;
