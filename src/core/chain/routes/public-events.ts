import { anyone } from "../../../platform/http/access.ts";
import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { entityId, entityType, eventsQuery, publicChain } from "../api/events.ts";
import { readPublicChain } from "../read-chain.ts";

export const publicEvents = endpoint({
  path: "/integrity/events/:entityType/:entityId",
  operationId: "readPublicEvents",
  summary: "Verify a voucher's history without a key",
  description:
    "The chain's hashes, for anyone who knows the voucher's id; every `verifyUrl` points here. Payloads are left " +
    "out because they contain codes: the holder of a payload can hash it and find the hash here. A browser gets a " +
    "page that shows the chain and verifies it.",
  access: anyone,
  parameters: { entityType, entityId },
  query: eventsQuery,
  response: publicChain,
  responseDescription: "A page of the chain, oldest events first.",
  handler: (deps: DepsOf<typeof readPublicChain>, { visitor, parameters, query }) =>
    readPublicChain(deps, visitor, parameters.entityType, parameters.entityId, query),
});
