import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Request, RequestHandler } from "express";
import { AppError } from "../../../contract/errors.ts";
import type { Place } from "../../../db/catalog.ts";
import type { ApiContext } from "../../../open-api.ts";
import { CODES_HEAD, codesLine, type Serials, sendCodes } from "../../../services/admin/export-batch.ts";
import { CSV } from "../../endpoint.ts";
import { ASSETS } from "../../pages/assets.ts";
import { type Html, html } from "../../pages/html.ts";
import { sendPage } from "../../pages/offer-page.ts";
import { qrCode } from "../../pages/qr-code.ts";
import { MINUTES, renderTime } from "../../pages/time.ts";
import { layOutForOperators, renderTrail } from "../operator-frame.ts";
import { actingAs, type Console, openPlace } from "./serve-action.ts";

/** Labels on one sheet of A4: three columns of eight. A page shows one sheet, unless the operator chooses serials. */
const SHEET = 24;
/** Most labels on one page: two megabytes. */
const LABELS_MAX = 1_200;

/** Sends all codes of a batch as CSV, in the form of `voucherctl batch export`. */
export function sendCsv(ctx: ApiContext, console: Console): RequestHandler {
  return async (request, response) => {
    const place = (await openPlace(ctx, "/batches/:id/codes.csv", request)) as Place;
    const chunks = await openCodes(ctx, console, request, { from: 1, to: Number(place.voucherCount) });
    response.set({ "Cache-Control": "no-store", "Content-Type": CSV }).attachment(`${place.batchId}.csv`);
    const parts = async function* () {
      yield CODES_HEAD;
      for await (const vouchers of chunks) yield vouchers.map(codesLine).join("");
    };
    await pipeline(Readable.from(parts()), response).catch(() => response.destroy());
  };
}

/** The sheet of a batch's active vouchers, by default of the first ones, to be printed on A4 and cut. */
export function showPrintSheet(ctx: ApiContext, console: Console): RequestHandler {
  return async (request, response) => {
    const place = (await openPlace(ctx, "/batches/:id/print", request)) as Place;
    const serials = serialsOf(request, Number(place.voucherCount));
    const labels: Html[] = [];
    for await (const vouchers of await openCodes(ctx, console, request, serials)) {
      const active = vouchers.filter(({ status }) => status === "Active");
      labels.push(...active.map(({ code, serial }) => renderLabel(place, code, serial)));
    }
    sendPage(response, 200, renderPrintPage(ctx, place, serials, labels));
  };
}

function openCodes(ctx: ApiContext, console: Console, request: Request, serials: Serials) {
  const id = String(request.params.id);
  return sendCodes(actingAs(request, ctx, console, "batch export", { id, ...serials }), id, serials);
}

function serialsOf({ query }: Request, size: number): Serials {
  const numberIn = (text: unknown) => (/^\d{1,8}$/.test(String(text)) ? Number(text) : 0);
  const from = numberIn(query.from ?? "1");
  const to = Math.min(size, query.to === undefined ? from + SHEET - 1 : numberIn(query.to));
  if (from >= 1 && to >= from && to - from < LABELS_MAX) return { from, to };
  throw new AppError("invalid_request", `Choose serials from 1 to ${size}, at most ${LABELS_MAX} at a time.`);
}

function renderPrintPage({ config }: ApiContext, place: Place, { from, to }: Serials, labels: readonly Html[]): Html {
  const size = Number(place.voucherCount);
  const sheets = Array.from({ length: Math.ceil(labels.length / SHEET) }, (_, at) =>
    labels.slice(at * SHEET, (at + 1) * SHEET),
  );
  return layOutForOperators(
    config,
    "Print sheet",
    html`<div class="screen">${renderTrail(config, place)}
<h1>Print sheet</h1>
<p>${labels.length} active vouchers with serials ${from} to ${to} of ${size}. Print on A4 at 100 %, without margins, and cut at the marks.</p>
<form class="act" method="get">
<div class="field"><label for="f-from">From serial</label><input id="f-from" name="from" inputmode="numeric" value="${from}"></div>
<div class="field"><label for="f-to">To serial</label><input id="f-to" name="to" inputmode="numeric" value="${to}"></div>
<button type="submit">Show these</button></form>
${to < size ? html`<p><a rel="next" href="?from=${to + 1}">Next serials</a></p>` : null}</div>
${sheets.map((sheet) => html`<section class="sheet" aria-label="Sheet">${CUT_MARKS}${sheet}</section>\n`)}`,
    "",
    { styles: [ASSETS.sheetStyle] },
  );
}

function renderLabel({ productName, validUntil }: Place, code: string, serial: number): Html {
  return html`<div class="voucher">${qrCode(code)}<p><bdi>${productName}</bdi></p><p><code>${code}</code></p>
<p>Until ${renderTime(validUntil as Date, MINUTES)}</p><p>No. ${serial}</p></div>\n`;
}

const CORNERS = Array.from(
  { length: 4 * 9 },
  (_, at) => `M${7 + 64 * (at % 4)} ${12.5 + 34 * Math.floor(at / 4)}h4m-2-2v4`,
);
/** A cross at each corner of a label. Millimetres on A4: a margin of 9 at the left and 12.5 at the top, labels of 64 by 34. */
const CUT_MARKS = html`<svg class="cuts" viewBox="0 0 210 297" aria-hidden="true"><path d="${CORNERS.join("")}"/></svg>`;
