import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { partnerKey } from "../../keys/routes/authenticate.ts";
import { codeOrTicket } from "../../voucher/api/typed-fields.ts";
import { eventsQuery, partnerChain } from "../api/events.ts";
import { readPartnerChain } from "../read-chain.ts";

export const partnerEvents = endpoint({
  path: "/partner/vouchers/:codeOrTicket/events",
  operationId: "readVoucherEvents",
  summary: "Read a voucher's sealed events",
  description:
    "Every event of the voucher with the exact text that was hashed, so that you can recompute each hash: " +
    "`recordHash` is the SHA-256 of `payload`, and each payload contains the previous event's hash.",
  access: partnerKey("voucher.read"),
  parameters: { codeOrTicket },
  query: eventsQuery,
  response: partnerChain,
  responseDescription: "A page of the chain, oldest events first.",
  handler: (deps: DepsOf<typeof readPartnerChain>, { caller, parameters, query }) =>
    readPartnerChain(deps, caller, parameters.codeOrTicket, query),
});
