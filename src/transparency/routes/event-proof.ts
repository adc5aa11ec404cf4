import { entityId, entityType } from "../../core/chain/api/events.ts";
import { anyone } from "../../platform/http/access.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { TEXT } from "../../platform/http/respond.ts";
import { receipt, sequenceParameter } from "../api/receipt.ts";
import { TLOG_ERRORS } from "../declared.ts";
import { readEventProof } from "../read-receipt.ts";

export const eventProof = endpoint({
  path: "/integrity/events/:entityType/:entityId/:sequence/proof",
  operationId: "readEventProof",
  ownErrors: ["entity_not_found", TLOG_ERRORS.not_logged_yet, "overloaded", "unavailable"],
  summary: "Prove an event without a key",
  description:
    "A proof that the event's `recordHash` is in the transparency log, for anyone who knows the voucher's id. It " +
    "has no payload: if you have the payload, hash it to compare.",
  access: anyone,
  parameters: { entityType, entityId, sequence: sequenceParameter },
  response: receipt,
  contentType: TEXT,
  responseDescription: "The proof.",
  handler: (deps: DepsOf<typeof readEventProof>, { visitor, parameters }) =>
    readEventProof(deps, visitor, parameters.entityType, parameters.entityId, parameters.sequence),
});
