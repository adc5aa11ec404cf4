import { partnerKey } from "../../core/keys/routes/authenticate.ts";
import { codeOrTicket } from "../../core/voucher/api/typed-fields.ts";
import { VOUCHER_READ } from "../../platform/api/errors.ts";
import { type DepsOf, endpoint } from "../../platform/http/endpoint.ts";
import { TEXT } from "../../platform/http/respond.ts";
import { receipt, sequenceParameter } from "../api/receipt.ts";
import { TLOG_ERRORS } from "../declared.ts";
import { readEventReceipt } from "../read-receipt.ts";

export const eventReceipt = endpoint({
  path: "/partner/vouchers/:codeOrTicket/events/:sequence/receipt",
  operationId: "readEventReceipt",
  ownErrors: [...VOUCHER_READ, TLOG_ERRORS.not_logged_yet, TLOG_ERRORS.payload_erased],
  summary: "Read the receipt of an event",
  description:
    "A proof that one sealed event of the voucher is in the transparency log, with the event's payload. An event " +
    "that does not exist answers 404 `not_found`.",
  access: partnerKey("voucher.read"),
  parameters: { codeOrTicket, sequence: sequenceParameter },
  response: receipt,
  contentType: TEXT,
  responseDescription: "The receipt.",
  handler: (deps: DepsOf<typeof readEventReceipt>, { caller, parameters }) =>
    readEventReceipt(deps, caller, parameters.codeOrTicket, parameters.sequence),
});
