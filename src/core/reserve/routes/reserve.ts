import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { partnerKey } from "../../keys/routes/authenticate.ts";
import { reserveRequest, reserveResponse } from "../api/reserve.ts";
import { lifetimeSeconds } from "../reservation-lifetime.ts";
import { reserveVoucher } from "../reserve-voucher.ts";

export const reserve = endpoint({
  method: "post",
  path: "/partner/vouchers/reserve",
  operationId: "reserveVoucher",
  summary: "Reserve a voucher for one checkout",
  description: (settings) =>
    `Reserves a voucher for ${showDuration(lifetimeSeconds(settings))}, so that no other key can redeem it without ` +
    "the reservation's token. A repeat by the same key returns the same ticket, token and expiry. Every other key is " +
    "refused while the reservation is live.",
  access: partnerKey("voucher.redeem"),
  reportedAs: "decision",
  body: reserveRequest,
  response: reserveResponse,
  responseDescription: "The reservation, new or repeated.",
  handler: (deps: DepsOf<typeof reserveVoucher>, { caller, body }) => reserveVoucher(deps, caller, body.code),
});

/** Shows whole minutes in minutes, and every other duration in seconds. */
function showDuration(seconds: number): string {
  const [count, unit] = seconds % 60 === 0 ? [seconds / 60, "minute"] : [seconds, "second"];
  return new Intl.NumberFormat("en", { style: "unit", unit, unitDisplay: "long" }).format(count);
}
