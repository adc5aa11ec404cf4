import { ENDPOINTS } from "../../../src/open/endpoints.ts";
import type { OUTSIDE } from "../../support/check-answer.ts";

/**
 * The requests below each mounted address that is no endpoint, GET by default. A test of the API reference checks that
 * no such address is missing.
 */
const OUTSIDE_ROUTES: Record<(typeof OUTSIDE)[number]["address"], string[]> = {
  "/": [""],
  "/check": ["", "POST "],
  "/assets": ["/:fileName"],
  "/logos": ["/:name"],
  "/colours": ["/:name"],
  "/integrity/events/:entityType/:entityId/history": [""],
  "/log": ["/checkpoint", "/policy", "/tile/*path"],
  "/docs": [""],
  "/openapi.json": [""],
  "/favicon.ico": [""],
  "/robots.txt": [""],
  "/.well-known/security.txt": [""],
  "/portal": [
    ...[
      "",
      "/redemptions",
      "/redemptions.csv",
      "/statement",
      "/statement.csv",
      "/activity",
      "/orders",
      "/orders/:externalRef",
      "/receipt",
      "/webhooks",
    ],
    "/orders/:externalRef/receipt",
  ],
  "/ops": [
    ...["", "/vouchers", "/vouchers/:id", "POST /vouchers/:id/release", "/organizations/:id", "/batches/:id"],
    ...[
      "/brands/:id",
      "/products/:id",
      "/contracts/:id",
      "/runbook",
      "/queues",
      "/queues/:page",
      "/queues/static/:file",
    ],
    ...["/queues/api/queues", "/queues/api/queues/:queue/:job", "PUT /queues/api/queues/:queue/:job"],
  ],
};

/** Every route by method and pattern. */
export const ROUTES: [method: string, path: string][] = [
  ...ENDPOINTS.map(({ path, method }): [string, string] => [method.toUpperCase(), path]),
  ...Object.entries(OUTSIDE_ROUTES).flatMap(([address, below]) =>
    below.map((text): [string, string] => {
      const [path = "", method = "GET"] = text.split(" ").reverse();
      return [method, `${address}${path}`];
    }),
  ),
];
