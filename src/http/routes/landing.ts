import type { ApiContext } from "../../context.ts";
import { renderLandingPage } from "../pages/landing-page.ts";
import { offerPage, sendPage, wantsPage } from "../pages/offer-page.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import { answer, type Route } from "../route.ts";

/** GET /: what this is, as a page for people and as a handful of addresses for programs. */
export function landingRoute({ config }: Pick<ApiContext, "config">): Route {
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
        (_request, response, next) => {
          if (wantsPage(response)) sendPage(response, 200, page);
          else next();
        },
        answer(async () => links),
      ],
    },
  };
}
