import type { ApiContext } from "../../context.ts";
import { renderLandingPage } from "../pages/landing-page.ts";
import { offerPage, sendPage, wantsPage } from "../pages/offer-page.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import { answer, type Route } from "../route.ts";
import { limitAddress } from "../spend-limit.ts";

/** GET /: what this is, as a page for people and as a handful of addresses for programs. */
export function landingRoute(ctx: Pick<ApiContext, "config" | "limits">): Route {
  const { config } = ctx;
  const page = renderLandingPage(config);
  const links = {
    name: "Partner Voucher API",
    docs: `${config.baseUrl}/docs`,
    openapi: `${config.baseUrl}/openapi.json`,
    health: `${config.baseUrl}/healthz`,
    readiness: `${config.baseUrl}/readyz`,
  };
  return {
    path: "/",
    methods: {
      get: [
        pageHeaders(),
        offerPage(config),
        limitAddress(ctx),
        (_request, response, next) => {
          if (wantsPage(response)) sendPage(response, 200, page);
          else next();
        },
        answer(async () => links),
      ],
    },
  };
}
