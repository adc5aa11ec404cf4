import type { Request, RequestHandler } from "express";
import { codesCsv, readCodes, type Serials } from "../../acts/export-batch.ts";
import type { IssuedVoucher } from "../../acts/issue-batch.ts";
import type { Lineage } from "../../core/catalog/db/catalog.ts";
import { ASSETS } from "../../pages/assets.ts";
import { Html, html } from "../../pages/html.ts";
import { ENGLISH, type Locale } from "../../pages/locale.ts";
import { layOutForOperators, renderTrail, siteOfRequest, USD } from "../../pages/operator-frame.ts";
import { qrCode } from "../../pages/qr-code.ts";
import { AppError } from "../../platform/api/errors.ts";
import { nextPiece } from "../../platform/batching/fair-slots.ts";
import { sendPage } from "../../platform/http/negotiate.ts";
import { wholeNumber } from "../../platform/http/whole-number.ts";
import type { ActionDeps } from "./action.ts";
import { actingAs, type Console, openLineage } from "./serve-action.ts";

/** Number of labels on one A4 sheet: three columns of eight. If no serials are chosen, a page shows one sheet. */
const SHEET = 24;
/** Number of labels made in one turn of the event loop, which takes 4 ms. A divisor of {@link SHEET}. */
const PIECE = 8;
/** Maximum number of labels on one page, which is then two megabytes large. */
const LABELS_MAX = 1_200;

/** Sends all codes of a batch as a CSV file, the same as from `voucherctl batch export`. */
export function sendCsv(ctx: ActionDeps, console: Console): RequestHandler {
  return async (request, response) => {
    const lineage = (await openLineage(ctx, "/batches/:id/codes.csv", request)) as Lineage;
    const codes = openCodes(ctx, console, request, { from: 1, to: Number(lineage.voucherCount) });
    const headers = { "Content-Disposition": `attachment; filename=${lineage.batchId}.csv` };
    await ctx.sendFile(response, { headers, parts: codesCsv(codes) });
  };
}

/** Asks which vouchers of a batch to print. Shows no code. */
export function choosePrintSheet(ctx: ActionDeps): RequestHandler {
  return async (request, response) => {
    const lineage = (await openLineage(ctx, "/batches/:id/print", request)) as Lineage;
    const to = Math.min(SHEET, Number(lineage.voucherCount));
    sendPage(response, 200, renderPrintPage(ctx, lineage, { from: 1, to }, null));
  };
}

/** A page with labels of a batch's active vouchers, by default the first ones, to print on A4 and cut. */
export function showPrintSheet(ctx: ActionDeps, console: Console): RequestHandler {
  return async (request, response) => {
    const lineage = (await openLineage(ctx, "/batches/:id/print", request)) as Lineage;
    const serials = serialsOf(request, Number(lineage.voucherCount));
    const codes = openCodes(ctx, console, request, serials);
    const parts = async function* () {
      const active: Label[] = [];
      for await (const vouchers of codes) active.push(...vouchers.filter(({ status }) => status === "Active"));
      const [head = "", tail = ""] = renderPrintPage(ctx, lineage, serials, active.length).markup.split(SHEETS.markup);
      yield head;
      yield* renderSheets(lineage, active);
      yield tail;
    };
    await ctx.sendFile(response, { headers: { "Content-Type": "text/html; charset=utf-8" }, parts: parts() });
  };
}

function openCodes(ctx: ActionDeps, console: Console, request: Request, serials: Serials) {
  const id = String(request.params.id);
  const act = actingAs(request, ctx, console, "batch export", { id, ...serials });
  return readCodes((step) => step(act), id, serials);
}

function serialsOf({ body }: Request, size: number): Serials {
  const sent = Object(body) as Record<string, unknown>;
  const numberIn = (text: unknown) => wholeNumber(text, 1, Number.MAX_SAFE_INTEGER) ?? 0;
  const from = numberIn(sent.from ?? "1");
  const to = Math.min(size, sent.to === undefined ? from + SHEET - 1 : numberIn(sent.to));
  if (from >= 1 && to >= from && to - from < LABELS_MAX) return { from, to };
  throw new AppError("invalid_request", `Choose serials from 1 to ${size}, at most ${LABELS_MAX} at a time.`);
}

/** Marks the place in the page where the sheets are inserted. */
const SHEETS = new Html("<!-- sheets -->");

/** @param count the number of labels on the sheets. Null while no labels are shown. */
function renderPrintPage({ config }: ActionDeps, lineage: Lineage, { from, to }: Serials, count: number | null): Html {
  const size = Number(lineage.voucherCount);
  const site = siteOfRequest(config, { path: `/batches/${lineage.batchId}/print` });
  return layOutForOperators(
    site,
    "Print sheet",
    html`<div class="screen">${renderTrail(site, lineage, { path: site.shown, label: "Print sheet" })}
<h1>Print sheet</h1>
<p>${describeSheet({ from, to }, size, count)}</p>
<form class="act" method="post">
<div class="field"><label for="f-from">From serial</label><input id="f-from" name="from" inputmode="numeric" \
value="${from}"></div>
<div class="field"><label for="f-to">To serial</label><input id="f-to" name="to" inputmode="numeric" value="${to}">\
</div>
<button type="submit">Show these</button></form>
${
  count !== null && to < size
    ? html`<form method="post"><input type="hidden" name="from" value="${to + 1}">\
<p class="actions"><button type="submit">Next serials</button></p></form>`
    : null
}</div>
${SHEETS}`,
    "",
    { styles: [ASSETS.sheetStyle] },
  );
}

function describeSheet({ from, to }: Serials, size: number, count: number | null): string {
  if (count === null && size <= LABELS_MAX) return `Choose from ${size} vouchers.`;
  if (count === null) return `Choose at most ${LABELS_MAX} of ${size} vouchers.`;
  const serials = `serials ${from} to ${to} of ${size}`;
  if (count === 0) return `There is nothing to print: no voucher with ${serials} is active.`;
  return `${count} active vouchers with ${serials}. Print on A4 at 100 %, without margins, and cut at the marks.`;
}

type Label = Pick<IssuedVoucher, "code" | "serial">;

/** Renders the sheets, a few labels in each turn of the event loop. */
async function* renderSheets(lineage: Lineage, labels: readonly Label[]): AsyncGenerator<string> {
  const locale = ENGLISH.in(lineage.timeZone);
  for (let at = 0; at < labels.length; at += PIECE) {
    await nextPiece();
    const next = Math.min(at + PIECE, labels.length);
    const shown = labels.slice(at, next).map((label) => renderLabel(lineage, label, locale));
    const [begins, ends] = [at % SHEET === 0, next % SHEET === 0 || next === labels.length];
    yield html`${begins ? SHEET_HEAD : null}${shown}${ends ? SHEET_TAIL : null}`.markup;
  }
}

function renderLabel(
  { brandName, productName, priceUsd, validUntil }: Lineage,
  { code, serial }: Label,
  locale: Locale,
): Html {
  return html`<div class="voucher">${qrCode(code)}<p><bdi>${productName}</bdi>, <bdi>${brandName}</bdi></p>\
<p>${USD.format(priceUsd ?? 0)}</p>
<p><code>${code}</code></p><p>Valid until ${locale.end(validUntil as Date)}</p><p>No. ${serial}</p></div>\n`;
}

const CORNERS = Array.from(
  { length: 4 * 9 },
  (_, at) => `M${7 + 64 * (at % 4)} ${12.5 + 34 * Math.floor(at / 4)}h4m-2-2v4`,
);
/** A cross at each corner of a label. Millimetres: margins of 9 (left) and 12.5 (top), labels of 64 by 34. */
const CUT_MARKS = html`<svg class="cuts" viewBox="0 0 210 297" aria-hidden="true"><path d="${CORNERS.join("")}"/>\
</svg>`;
const SHEET_HEAD = html`<section class="sheet" aria-label="Sheet">${CUT_MARKS}`;
const SHEET_TAIL = html`</section>\n`;
