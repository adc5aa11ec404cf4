import { z } from "zod";
import type { Confirming } from "../../core/commit/confirm-reads.ts";
import { ISSUER_KEY } from "../../issuer/act-endpoint.ts";
import type { IssuerDeps } from "../../issuer/issuer.ts";
import { ID_CURSOR, listOwn, onlyOf, onlyOfUser, pageOf, pageQuery } from "../../issuer/lists.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { brand, text, timestamp } from "../../platform/api/fields.ts";
import { problem } from "../../platform/api/problems.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { CONTRACT_STATUSES } from "../audience.ts";
import { CONTRACTS } from "../db/contracts.ts";

const contract = z.object({
  id: text("The contract's id.", EXAMPLE.contractId),
  brandId: text("The brand's id.", EXAMPLE.brandId),
  brand,
  userId: text("The referrer: the subject of the user's tokens.", "7f3c0a52"),
  status: text("`Offered`, `Active`, `Ended` or `Declined`. Later releases may add others.", "Active"),
  endsAt: timestamp("When it ends; null: when it is ended.", EXAMPLE.validUntil).nullable(),
  offeredAt: timestamp("When it was offered.", EXAMPLE.issuedAt),
});

const status = z
  .enum(CONTRACT_STATUSES, { error: problem("notOneOf", { values: CONTRACT_STATUSES.join(", ") }) })
  .optional()
  .meta({ description: "Lists only the contracts with this status." });

export const issuedContracts = endpoint({
  path: "/issuer/contracts",
  operationId: "listContracts",
  summary: "List your organization's contracts with referrers",
  description: "All contracts, or those of one brand, one user or one status.",
  access: ISSUER_KEY,
  query: z.object({ brand: onlyOf("brand"), user: onlyOfUser, status, ...pageQuery(ID_CURSOR) }),
  response: pageOf("ContractsPage", contract, "ids, new ones last"),
  responseDescription: "A page of contracts.",
  handler: (deps: IssuerDeps & Confirming, { caller, query }) => listOwn(deps, caller, [CONTRACTS, contract], query),
});
