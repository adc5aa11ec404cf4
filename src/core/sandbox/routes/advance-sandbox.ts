import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { sandboxKey } from "../../keys/routes/authenticate.ts";
import { advanceSandbox as advance } from "../advance-sandbox.ts";
import { advanceRequest, advanceResponse, LIVE_RESERVATIONS_MAX } from "../api.ts";

export const advanceSandbox = endpoint({
  method: "post",
  path: "/sandbox/advance",
  operationId: "advanceSandbox",
  summary: "Let a sandbox's times come closer",
  description: `Moves the times of the key's sandbox organization that are still ahead back by \`seconds\`, as if that \
time had passed: the ends of live reservations, \`validUntil\` of vouchers, windows, and the ends of referrer \
contracts. Reservations and vouchers whose time is over then end as usual. Nothing else moves: events, redemptions, \
keys and times that have passed stay as they are.

Each call moves the times again, so do not repeat it blindly. It applies to the whole organization, also to the \
vouchers of other tests. At most ${LIVE_RESERVATIONS_MAX.toLocaleString("en")} reservations may be live. The expired \
events of a large batch are recorded within seconds after the response; \`status\` is right at once.`,
  access: sandboxKey("voucher.redeem"),
  body: advanceRequest,
  response: advanceResponse,
  responseDescription: "The times have moved.",
  handler: (deps: DepsOf<typeof advance>, { caller, body }) => advance(deps, caller, body.seconds),
});
