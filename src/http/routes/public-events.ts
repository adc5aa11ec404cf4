import { readPublicChain } from "../../services/read-chain.ts";
import { anyone } from "../access.ts";
import { PUBLIC_CHAIN_EXAMPLE, publicChain } from "../answers/chain.ts";
import { endpoint } from "../endpoint.ts";
import { entityId, entityType, eventsQuery } from "../fields.ts";

/** GET /integrity/events/{entityType}/{entityId}: open to anyone; without payloads, because payloads carry codes. */
export const publicEvents = endpoint({
  method: "get",
  path: "/integrity/events/:entityType/:entityId",
  operationId: "readPublicEvents",
  tag: "Public verification",
  summary: "Check a voucher's history without a key",
  description:
    "The chain's hashes for anyone who knows the voucher's id; every `verifyUrl` leads here. Payloads are left out because they carry codes: whoever holds one can hash it and find the hash here. A browser gets a page that shows the chain and checks it.",
  access: anyone,
  parameters: { entityType, entityId },
  query: eventsQuery,
  answer: publicChain,
  answerDescription: "A page of the chain, oldest events first.",
  answerExamples: { chain: { summary: "Issued and redeemed", value: PUBLIC_CHAIN_EXAMPLE } },
  errors: ["entity_not_found", "overloaded", "unavailable"],
  work: (ctx, { parameters, query }) => readPublicChain(ctx, parameters.entityType, parameters.entityId, query),
});
