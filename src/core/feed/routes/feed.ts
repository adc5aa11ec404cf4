import { type DepsOf, endpoint } from "../../../platform/http/endpoint.ts";
import { partnerKey } from "../../keys/routes/authenticate.ts";
import { feedQuery, feedResponse } from "../api/feed.ts";
import { readFeed } from "../read-feed.ts";

export const feed = endpoint({
  path: "/partner/events",
  operationId: "readEvents",
  summary: "Read all events of your vouchers",
  description: `What happened to any voucher of your organization, in one final order: for data warehouses, for tills \
that cannot receive webhooks, and to check that nothing is missing.

Keep \`nextCursor\` with what you have stored, and send it as \`after\`: no event is skipped, and none is listed \
twice. Only sealed events are listed, some tenths of a second after they are committed. While a large batch is being \
issued, no later event of any organization is listed until it is issued or given up.

With \`wait\`, the answer comes as soon as there is an event.

A cursor of an event that the database has lost, as after a restore from a backup, is 400. Then read again from the \
beginning, and compare \`entityId\` and \`sequence\` with what you have.`,
  access: partnerKey("voucher.read"),
  query: feedQuery,
  response: feedResponse,
  responseDescription: "A page of events, oldest first.",
  handler: (deps: DepsOf<typeof readFeed>, { caller, query }) => readFeed(deps, caller, query),
});
