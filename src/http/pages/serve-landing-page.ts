import type { ApiContext } from "../../open-api.ts";
import { type Route, respondJson } from "../endpoint.ts";
import { limitAddress } from "../middleware/rate-limit.ts";
import { renderLandingPage } from "./landing-page.ts";
import { GUIDE_PATH } from "./layout.ts";
import { offerPage, sendPage, wantsPage } from "./offer-page.ts";
import { pageHeaders } from "./page-headers.ts";

/** The start page, and its links as JSON for programs. */
export function landingRoute(ctx: Pick<ApiContext, "config" | "limits">): Route {
  const { config } = ctx;
  const page = renderLandingPage(config);
  const links = {
    name: "Partner Voucher API",
    docs: `${config.baseUrl}/docs`,
    guide: `${config.baseUrl}${GUIDE_PATH}`,
    openapi: `${config.baseUrl}/openapi.json`,
    health: `${config.baseUrl}/healthz`,
    readiness: `${config.baseUrl}/readyz`,
  };
  return {
    path: "/",
    methods: {
      get: [
        pageHeaders,
        offerPage(config),
        limitAddress(ctx),
        (_request, response, next) => {
          if (wantsPage(response)) sendPage(response, 200, page);
          else next();
        },
        respondJson(async () => links),
      ],
    },
  };
}
