import { readAnyVoucherHistory } from "../acts/across-organizations.ts";
import { readLineage } from "../acts/read-lineage.ts";
import type { HistoryDeps } from "../acts/read-voucher-history.ts";
import { saySuspension } from "../acts/words.ts";
import type { OperatorReads } from "../core/callers/bulkhead.ts";
import type { PastReservation } from "../core/look-up/api/voucher-history.ts";
import { releaseReservation } from "../core/reserve/release-reservation.ts";
import { codeEnd } from "../core/voucher/codes.ts";
import type { VoucherStatus } from "../core/voucher/voucher.ts";
import { type Html, html } from "../pages/html.ts";
import { renderSandboxNotice } from "../pages/layout.ts";
import {
  layOutForOperators,
  linkActions,
  linkTo,
  opsPath,
  renderFacts,
  renderStatus,
  renderTrail,
} from "../pages/operator-frame.ts";
import { renderEvent, renderLife } from "../pages/render-history.ts";
import { renderEnd, renderTime } from "../pages/time.ts";
import { AppError } from "../platform/api/errors.ts";
import type { DepsOf } from "../platform/http/endpoint.ts";
import type { Page, Visit } from "./visit.ts";

const EXTEND = ["extend", "Extend this voucher"] as const;
const VOID = ["void", "Void this voucher"] as const;
const SUSPEND = ["suspend", "Suspend this voucher"] as const;
const RESUME = ["resume", "Resume this voucher"] as const;
const RESUME_BATCH = ["resume", "Resume the batch"] as const;
/** The changes that a voucher's page offers for each status, besides the resumption. */
const CHANGES: Partial<Record<VoucherStatus, readonly (readonly [verb: string, said: string])[]>> = {
  Active: [EXTEND, SUSPEND, VOID],
  Suspended: [EXTEND, VOID],
  // Suspending an expired voucher keeps it unusable if its batch is extended later.
  Expired: [EXTEND, SUSPEND],
};
const SHOW = ["show", "Show personal data"] as const;
const ERASE = ["erase", "Erase personal data"] as const;

/**
 * The page of a voucher: its fields, and its events and reservations in order of time. For an Active or Suspended
 * voucher, it shows only the end of the code and no payloads. Operators who may not see codes get neither the code nor
 * payloads.
 */
export const voucherPage: Page<HistoryDeps> = async (visit) => {
  const { ctx, site, id, seesCredentials, credential, recordVisit } = visit;
  // Accepts only ids, because a code must not become part of a URL.
  if (!id.startsWith("vch_")) throw new AppError("voucher_not_found", "No voucher has this id.");
  const { voucher, events, reservations, redemption } = await readAnyVoucherHistory(ctx, id);
  await recordVisit("page voucher", { type: "VoucherInstance", id: voucher.id });
  const lineage = await readLineage(ctx, "vouchers", voucher.id);
  // Hides a code that is worth money, now or after a resumption, and the payloads, which contain the code.
  const isUsable = voucher.status === "Active" || voucher.status === "Suspended";
  const showsCode = seesCredentials && !isUsable;
  const suspendedBy = voucher.suspension?.by;
  const isReserved = reservations.some(({ state }) => state === "Live");
  const entries = [
    ...events.map((event) => ({
      at: event.occurredAt,
      entry: renderEvent(event, seesCredentials ? redemption : null, showsCode ? "payload" : "facts"),
    })),
    ...reservations.map((reservation) => ({
      at: reservation.startedAt,
      entry: renderReservation(visit, voucher.id, reservation),
    })),
  ].toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  return layOutForOperators(
    site,
    `Voucher ${voucher.serial} of ${voucher.productName}`,
    html`${renderTrail(site, lineage)}<h1>Voucher</h1>
${voucher.sandbox ? renderSandboxNotice() : null}
${renderFacts([
  ["Status", html`${renderStatus(voucher.status)}${isReserved ? html` ${renderStatus("Reserved")}` : null}`],
  ["Code", credential(showsCode ? voucher.code : codeEnd(voucher.code))],
  ["Id", html`<code>${voucher.id}</code>`],
  ["Product", `${voucher.productName} (${voucher.productKey}), ${voucher.brand}`],
  ["Organization", linkTo(site, "organizations", voucher.organizationId)],
  ["Batch", html`${linkTo(site, "batches", voucher.batchId)}, serial ${voucher.serial}`],
  ["Valid until", renderEnd(new Date(voucher.validUntil))],
  ["Suspended", saySuspension(voucher)],
  ["Reference", voucher.externalRef],
  ["Redeem code", credential(voucher.redeemCode)],
  ["Public history", html`<a href="${voucher.verifyUrl}">${voucher.verifyUrl}</a>`],
])}
${linkActions(site, ["batches", voucher.batchId], ...(suspendedBy === "batch" ? [RESUME_BATCH] : []))}
${linkActions(
  site,
  ["vouchers", voucher.id],
  ...(suspendedBy === "voucher" ? [RESUME] : []),
  ...(CHANGES[voucher.status] ?? []).filter((change) => change !== SUSPEND || suspendedBy !== "voucher"),
  SHOW,
  ERASE,
)}
${renderLife(entries.map(({ entry }) => entry))}`,
  );
};

export type ReleaseDeps = HistoryDeps & DepsOf<typeof releaseReservation> & OperatorReads;

/**
 * Releases a voucher's live reservation, and returns the URL of the voucher's page.
 * @throws AppError `reservation_ended`.
 */
export async function releaseReservationOf(
  { ctx, site, id, recordVisit }: Visit<ReleaseDeps>,
  ticket: unknown,
): Promise<string> {
  const { voucher, reservations } = await ctx.operatorReads({}, () => readAnyVoucherHistory(ctx, id));
  const live = reservations.find((reservation) => reservation.state === "Live" && reservation.ticket === ticket);
  if (live === undefined) throw new AppError("reservation_ended", "This reservation has ended.");
  await ctx.operatorReads({}, () => recordVisit("page release", { type: "VoucherInstance", id: voucher.id }));
  const caller = { organizationId: voucher.organizationId, keyId: live.keyId, sandbox: voucher.sandbox === true };
  await releaseReservation(ctx, caller, live.ticket, "released by an operator");
  return opsPath(site, "vouchers", voucher.id);
}

function renderReservation(
  { site, credential }: Pick<Visit, "site" | "credential">,
  voucherId: string,
  reservation: PastReservation,
): Html {
  const { ticket, state, keyId, keyLabel, expiresAt, endedAt, endReason } = reservation;
  const shown = credential(ticket);
  const release =
    site.offers(`/vouchers/${voucherId}/release`) && state === "Live"
      ? html`<form action="${opsPath(site, "vouchers", voucherId, "release")}" method="post">\
<input type="hidden" name="ticket" value="${ticket}">
<button type="submit">Release this reservation</button></form>`
      : null;
  return html`<li><p class="when">${renderTime(reservation.startedAt)}</p>
<p><strong>Reserved</strong> ${renderStatus(state)}</p>
<p class="fine">${shown === null ? "By" : html`Ticket ${shown}, by`} \
<code>${keyId}</code>${keyLabel === null ? "" : ` (${keyLabel})`}, \
until ${renderTime(expiresAt)}.
${endedAt === null ? null : html`Ended ${renderTime(endedAt)}${endReason === null ? "" : `: ${endReason}`}.`}</p>
${release}</li>
`;
}
