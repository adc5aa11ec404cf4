import type { RequestHandler } from "express";
import helmet from "helmet";

/**
 * The headers of a page. The page loads styles, scripts and images only from this origin, opens no connections, submits
 * no form and cannot be framed. `directives` of the Content-Security-Policy can permit more.
 */
export function headersOf(directives: Record<string, string[]> = {}): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "form-action": ["'none'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
        ...directives,
      },
    },
    referrerPolicy: { policy: "same-origin" },
    xFrameOptions: { action: "deny" },
    originAgentCluster: false,
    // Only the proxy that terminates TLS knows whether the whole host uses https.
    strictTransportSecurity: false,
  });
}

/** The headers of most pages. Their forms submit only to this origin. */
export const pageHeaders = headersOf({ "form-action": ["'self'"] });

/** The headers of the verification page. They forbid all forms, so that no form can send a pasted payload away. */
export const sealedPageHeaders = headersOf();
