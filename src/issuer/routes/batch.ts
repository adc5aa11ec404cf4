import { z } from "zod";
import { readBatch } from "../../acts/read-batch.ts";
import { withIssueReferences } from "../../acts/read-issue-references.ts";
import { type Confirming, readConfirmed } from "../../core/commit/confirm-reads.ts";
import type { Window } from "../../core/voucher/voucher.ts";
import { EXAMPLE, examples } from "../../platform/api/example.ts";
import {
  benefitMonths,
  count,
  named,
  pickFields,
  sampleOf,
  sandbox,
  text,
  timestamp,
  usageUnitLabel,
  usd,
} from "../../platform/api/fields.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { ISSUER_KEY, idOf } from "../act-endpoint.ts";
import { type IssuerDeps, inIssuer } from "../issuer.ts";
import { withTexts } from "../lists.ts";
import { BATCH_FIELDS } from "./batches.ts";

const window = z
  .object({
    opensAt: timestamp("When it opens; null: with the issue.", EXAMPLE.issuedAt).nullable(),
    closesAt: timestamp("When it closes; null: with the vouchers' end.", EXAMPLE.validUntil).nullable(),
  })
  .nullable()
  .meta({ description: "Null if the batch has no such window." });

const batchResponse = named("Batch", {
  ...BATCH_FIELDS,
  retailPriceUsd: usd("List price.", EXAMPLE.retailPriceUsd),
  benefitMonths,
  usageUnitLabel,
  active: count(0, "Vouchers that can be used.", 480),
  suspended: count(0, "Vouchers that are suspended, individually or with the batch.", 0),
  suspendedAt: timestamp("Since when the batch is suspended; null while it is not.", EXAMPLE.issuedAt).nullable(),
  suspensionReason: text("Why the batch is suspended; null while it is not.", "the parcel was stolen").nullable(),
  expired: count(0, "Vouchers that have expired.", 0),
  redeemed: count(0, "Vouchers that were redeemed.", 18),
  voided: count(0, "Vouchers that were voided.", 2),
  sandbox,
  windows: z
    .object({ claim: window, buy: window })
    .meta({ description: "Its windows.", examples: [{ claim: null, buy: null }] }),
  left: count(0, "Vouchers that users can still claim or buy; null without a window.", 480).nullable(),
});

examples.add(batchResponse, { batch: { summary: "A batch", value: sampleOf(batchResponse) } });

const viewWindow = (found: Window | null) => found && (withTexts(found) as z.output<typeof window>);

export const batch = endpoint({
  path: "/issuer/batches/:id",
  operationId: "readBatch",
  summary: "Read a batch and count its vouchers by status",
  description: "The counts are of this moment. A million vouchers take seconds.",
  access: ISSUER_KEY,
  parameters: { id: idOf("batch") },
  response: batchResponse,
  responseDescription: "The batch.",
  handler: (deps: IssuerDeps & Confirming, { caller, parameters: { id } }) =>
    readConfirmed(deps, () =>
      inIssuer(deps, caller, async (ctx) => {
        await ctx.requireOwn("batch", id);
        const found = await readBatch(ctx, id);
        const [referenced] = await withIssueReferences(ctx, [found]);
        const windows = { claim: viewWindow(found.windows.claim), buy: viewWindow(found.windows.buy) };
        return pickFields(batchResponse, { ...withTexts({ ...referenced }), windows } as never);
      }),
    ),
});
