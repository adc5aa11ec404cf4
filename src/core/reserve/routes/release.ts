import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { partnerKey } from "../../keys/routes/authenticate.ts";
import { nothingReleased, releaseRequest, releaseResponse } from "../api/release.ts";
import { releaseReservation } from "../release-reservation.ts";

export const release = endpoint({
  method: "post",
  path: "/partner/vouchers/release",
  operationId: "releaseReservation",
  summary: "Release a reservation",
  description:
    "Ends a reservation that is not needed, so that the voucher is free at once. Always safe to call: a ticket " +
    "without a live reservation, for any reason, answers 200 with `released: false`.",
  access: partnerKey("voucher.redeem"),
  body: releaseRequest,
  response: releaseResponse,
  responseDescription: "The ticket no longer has a live reservation.",
  handler: async (deps: DepsOf<typeof releaseReservation>, request) => {
    const { caller, body } = request;
    const released = await releaseReservation(deps, caller, body.ticket, body.reason ?? null);
    return released ? { released } : nothingReleased(request.language);
  },
});
