import { partnerEvents } from "../core/chain/routes/partner-events.ts";
import { publicEvents } from "../core/chain/routes/public-events.ts";
import { feed } from "../core/feed/routes/feed.ts";
import { lookUp } from "../core/look-up/routes/look-up.ts";
import { redeem } from "../core/redeem/routes/redeem.ts";
import { redemption } from "../core/redeem/routes/redemption.ts";
import { redemptions } from "../core/redeem/routes/redemptions.ts";
import { statement } from "../core/redeem/routes/statement.ts";
import { release } from "../core/reserve/routes/release.ts";
import { reserve } from "../core/reserve/routes/reserve.ts";
import { advanceSandbox } from "../core/sandbox/routes/advance-sandbox.ts";
import { health, readiness } from "../core/servers/health.ts";
import { issuerEndpoints } from "../issuer/endpoints.ts";
import type { DescribedParts } from "../pages/openapi/describe-api.ts";
import { TAGS } from "../pages/openapi/introduction.ts";
import type { Endpoint } from "../platform/http/endpoint.ts";
import { each } from "./api-parts.ts";
import type { ApiContext } from "./open-api.ts";
import { WING_ACTS } from "./wing-acts.ts";

const ALL = [
  reserve,
  redeem,
  release,
  lookUp,
  partnerEvents,
  feed,
  redemptions,
  redemption,
  statement,
  advanceSandbox,
  publicEvents,
  health,
  readiness,
  ...each("endpoints").flat(),
  ...issuerEndpoints(WING_ACTS),
] satisfies readonly Endpoint<ApiContext>[];

const groupOf = ({ tag }: Endpoint) => TAGS.findIndex(({ name }) => name === tag);

/** All endpoints, in the order of the API reference. */
export const ENDPOINTS = ALL.toSorted((a, b) => groupOf(a) - groupOf(b));

const described = each("described");

/** The content of the API reference. */
export const REFERENCE: DescribedParts = {
  endpoints: ENDPOINTS,
  files: Object.assign({}, ...described.map(({ files }) => files)),
  webhooks: Object.assign({}, ...described.map(({ webhooks }) => webhooks)),
  documents: described.flatMap(({ documents = [] }) => documents),
};
