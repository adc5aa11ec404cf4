import helmet from "helmet";

/**
 * The headers of a page: it loads styles, scripts and images from this origin only, opens no connections, cannot be framed and submits no
 * form.
 */
export const pageHeaders = helmet({
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
    },
  },
  referrerPolicy: { policy: "same-origin" },
  xFrameOptions: { action: "deny" },
  originAgentCluster: false,
  // The proxy that terminates TLS decides whether the whole host is https only.
  strictTransportSecurity: false,
});
