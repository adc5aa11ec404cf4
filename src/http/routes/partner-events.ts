import { readPartnerChain } from "../../services/read-chain.ts";
import { CHAIN_EXAMPLE, partnerChain } from "../answers/chain.ts";
import { partnerKey } from "../authenticate.ts";
import { endpoint } from "../endpoint.ts";
import { codeOrTicket, eventsQuery } from "../fields.ts";

/** GET /partner/vouchers/{codeOrTicket}/events (contract, "Endpoints"). */
export const partnerEvents = endpoint({
  method: "get",
  path: "/partner/vouchers/:codeOrTicket/events",
  operationId: "readVoucherEvents",
  tag: "Partner",
  summary: "Read a voucher's sealed history",
  description:
    "Every event of the voucher with the exact text that was hashed, so that you can compute each hash yourself: `recordHash` is the SHA-256 of `payload`, and each payload names the hash before it.",
  access: partnerKey("voucher.read"),
  parameters: { codeOrTicket },
  query: eventsQuery,
  answer: partnerChain,
  answerDescription: "A page of the chain, oldest events first.",
  answerExamples: { chain: { summary: "Issued and redeemed", value: CHAIN_EXAMPLE } },
  errors: ["voucher_not_found", "too_many_misses", "overloaded", "unavailable"],
  work: (ctx, { who, parameters, query }) => readPartnerChain(ctx, who, parameters.codeOrTicket, query),
});
