import { AppError } from "../../contract/errors.ts";
import { ENTITY_TYPE } from "../../domain/chain.ts";
import type { ApiContext } from "../../open-api.ts";
import type { Route } from "../endpoint.ts";
import { limitAddress } from "../middleware/rate-limit.ts";
import { CHECK_INPUT_MAX, CHECK_PATH, readVoucherId, renderCheckPage } from "./check-form.ts";
import { offerPage, sendPage, wantsPage } from "./offer-page.ts";
import { pageHeaders } from "./page-headers.ts";

const NOT_AN_ID =
  "This is neither a verify link nor a voucher id. The id begins with vch_. A voucher's code cannot be checked here: ask the shop.";

/** The page "Check a voucher". Redirects to the voucher's history when the request contains an id or a verify link. */
export function checkVoucherRoute(ctx: Pick<ApiContext, "config" | "limits">): Route {
  const { config } = ctx;
  return {
    path: CHECK_PATH,
    methods: {
      get: [
        pageHeaders,
        offerPage(config),
        limitAddress(ctx),
        (request, response) => {
          const { voucher } = request.query;
          const entered = typeof voucher === "string" ? voucher.slice(0, CHECK_INPUT_MAX) : "";
          const id = readVoucherId(entered);
          if (id !== null) return response.redirect(303, `${config.basePath}/integrity/events/${ENTITY_TYPE}/${id}`);
          if (!wantsPage(response)) throw new AppError("invalid_request", "voucher must be a verify link or an id.");
          const isEmpty = entered.trim() === "";
          sendPage(response, isEmpty ? 200 : 400, renderCheckPage(config, entered, isEmpty ? null : NOT_AN_ID));
        },
      ],
    },
  };
}
