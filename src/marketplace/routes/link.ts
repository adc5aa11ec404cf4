import { anyone } from "../../platform/http/access.ts";
import { type DepsOf, endpoint, pathId } from "../../platform/http/endpoint.ts";
import { linkCode } from "../api/acquire.ts";
import { linkResponse } from "../api/link.ts";
import { MARKETPLACE_ERRORS } from "../declared.ts";
import { describeLink } from "../view-link.ts";

export const link = endpoint({
  path: "/r/:code",
  operationId: "openLink",
  ownErrors: [MARKETPLACE_ERRORS.link_not_found, "overloaded", "unavailable"],
  summary: "Open a referral link",
  description:
    "What the link offers, for callers that prefer JSON, as `Accept: application/json` does. All others get a " +
    "page for people. `POST /r/{code}/claim` claims through it. A link works while its contract is active.",
  access: { ...anyone, tag: "Marketplace" },
  parameters: { code: linkCode },
  response: linkResponse,
  hasPage: true,
  responseDescription: "What the link offers.",
  handler: (deps: DepsOf<typeof describeLink>, { visitor, parameters }) =>
    describeLink(deps, visitor, pathId(parameters.code)),
});
