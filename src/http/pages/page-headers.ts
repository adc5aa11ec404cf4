import type { RequestHandler } from "express";
import helmet from "helmet";

/**
 * The headers of a page that is all its own: it loads style, scripts and pictures from this origin and nothing else, talks to
 * nobody, cannot be framed, and sends forms nowhere, or to this origin where it `hasForm`.
 */
export function pageHeaders({ hasForm }: { hasForm: boolean } = { hasForm: false }): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "form-action": [hasForm ? "'self'" : "'none'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
      },
    },
    // With `no-referrer`, browsers would send forms with an opaque Origin.
    referrerPolicy: { policy: "same-origin" },
    xFrameOptions: { action: "deny" },
    originAgentCluster: false,
    // Whether a whole host speaks https only is for whoever terminates TLS to say.
    strictTransportSecurity: false,
  });
}
