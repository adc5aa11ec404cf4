import { createBrand } from "../acts/brand/create.ts";
import { hasCap, sayCaps, sayToday } from "../acts/key/change.ts";
import { createKey } from "../acts/key/create.ts";
import { readBatch } from "../acts/read-batch.ts";
import { readLineage } from "../acts/read-lineage.ts";
import {
  type BatchOfOrganization,
  findOrganization,
  selectBatchesOfOrganization,
  selectBrandsOfOrganization,
} from "../core/catalog/db/catalog.ts";
import { type ListedKey, selectKeys } from "../core/keys/db/api-keys.ts";
import { type LastRedemption, selectLastRedemptions } from "../core/redeem/db/redemptions.ts";
import { type Html, html } from "../pages/html.ts";
import { GUIDE_PATH } from "../pages/layout.ts";
import {
  COUNT,
  layOutForOperators,
  linkActions,
  linkNext,
  linkTo,
  type OperatedSite,
  opsPath,
  renderFacts,
  renderFigures,
  renderSection,
  renderSteps,
  renderTable,
  renderTrail,
  STACKS,
  sectionStep,
  USD,
} from "../pages/operator-frame.ts";
import { MINUTES, renderEnd, renderTime } from "../pages/time.ts";
import { AppError } from "../platform/api/errors.ts";
import { type ActivityCount, readActivity } from "../watch/db/activity.ts";
import { sayEmpty } from "./actions/say-empty.ts";
import type { Section } from "./console-part.ts";
import { renderState } from "./render-state.ts";
import type { Visit } from "./visit.ts";

/** Number of entries on one page of a list. */
export const PAGE_SIZE = 25;
/** The page counts the vouchers left in a batch up to this number. If there are more, it says "more than" it. */
const LEFT_MAX = 1_000;

const HOUR_MS = 3_600_000;

const ACTS_ON_ORGANIZATION = [
  ["brands/new", "New brand"],
  ["keys/new", "New API key"],
  ["members/new", "Add a member"],
  ["change", "Change the time zone"],
] as const;
const ACTS_ON_PERSONS = [
  ["show", "Show personal data by reference"],
  ["erase", "Erase personal data by reference"],
] as const;

/** One page of a list. */
interface Cut<Item> {
  shown: Item[];
  next: string | null;
}

/**
 * The first {@link PAGE_SIZE} entries of `found`. If `found` has more entries, `next` makes the link to the next page.
 */
function cut<Item>(found: readonly Item[], next: (last: Item) => string): Cut<Item> {
  const shown = found.slice(0, PAGE_SIZE);
  const last = shown.at(-1);
  return { shown, next: last === undefined || found.length === shown.length ? null : next(last) };
}

/** The redemption after which the page begins. The list shows the newest first. Null for the first page. */
function redemptionBefore({ query }: Visit): { redeemedAt: Date; voucherId: string } | null {
  const at = query("redeemedBefore");
  if (at !== "" && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(at)) {
    throw new AppError("invalid_request", "redeemedBefore must be a time of this page.");
  }
  const redeemedAt = new Date(at);
  return Number.isNaN(redeemedAt.getTime()) ? null : { redeemedAt, voucherId: query("voucherBefore") };
}

/** An organization: its brands, pages of its API keys, batches and redemptions, and sections of optional features. */
export async function showOrganization<Deps extends object>(
  visit: Visit<Deps>,
  ofWings: readonly ((visit: Visit<Deps>) => Promise<Html>)[],
): Promise<Html> {
  const { ctx, site, id, query, recordVisit } = visit;
  const { pool } = ctx;
  const path = opsPath(site, "organizations", id);
  const before = redemptionBefore(visit);
  const organization = await findOrganization(pool, id);
  if (organization === null) throw new AppError("not_found", "There is no organization with this id.");
  const brands = await selectBrandsOfOrganization(pool, id);
  const redemptions = cut(
    await selectLastRedemptions(pool, id, before, PAGE_SIZE + 1),
    ({ redeemedAt, voucherId }) =>
      `${path}?redeemedBefore=${redeemedAt.toISOString()}&voucherBefore=${encodeURIComponent(voucherId)}`,
  );
  const batches = cut(
    await selectBatchesOfOrganization(pool, {
      organizationId: id,
      before: query("batchesBefore") || null,
      limit: PAGE_SIZE + 1,
      countedMax: LEFT_MAX + 1,
    }),
    (last) => `${path}?batchesBefore=${encodeURIComponent(last.id)}`,
  );
  const keys = cut(
    await selectKeys(pool, id, query("keysBefore") || null, PAGE_SIZE + 1),
    (last) => `${path}?keysBefore=${encodeURIComponent(last.id)}#keys`,
  );
  const activity = renderActivity(await readActivity(pool, id));
  const further: Html[] = [];
  for (const render of ofWings) further.push(await render(visit));
  await recordVisit("page organization", { type: "Organization", id });
  const sections = [
    renderKeys(
      site,
      query("keysBefore") === "" ? "API keys" : "Earlier API keys",
      keys,
      sayEmpty(site, "The organization has no API keys yet, so its programs cannot redeem.", createKey, id),
    ),
    renderBatches(site, batches, brands.length > 0),
    renderRedemptions(site, before === null ? "Last redemptions" : "Earlier redemptions", redemptions),
    ...further,
  ];
  const ofPersons = linkActions(site, ["organizations", id], ...ACTS_ON_PERSONS);
  const named = brands.map((brand) => html`${linkTo(site, "brands", brand.id, brand.name)} `);
  return layOutForOperators(
    site,
    `Organization ${organization.name}`,
    html`${renderSteps([sectionStep(site, "Organizations"), { path, label: organization.name }], organization)}
<h1><bdi>${organization.name}</bdi></h1>
${activity}${renderFacts([
  ["Organization", html`<code>${id}</code>`],
  ["Brands", named.length === 0 ? sayEmpty(site, "None yet.", createBrand, id) : html`${named}`],
  ["Time zone of its pages", organization.timeZone],
])}
${linkActions(site, ["organizations", id], ...ACTS_ON_ORGANIZATION)}
<p><a href="${path}/calls">Last calls</a> with its keys, and how they were answered.</p>
${sections}${ofPersons === null ? null : renderSection("persons", "Personal data", ofPersons)}`,
  );
}

/**
 * The redemptions of the last hour and the last two days, as far as the sweeper has counted. A dash if it has counted
 * none of that time.
 */
function renderActivity({ now, minutes, hours, completeUntil }: Awaited<ReturnType<typeof readActivity>>): Html {
  const sum = (counts: readonly ActivityCount[], lengthMs: number) =>
    now.getTime() - completeUntil.getTime() >= lengthMs
      ? "–"
      : COUNT.format(counts.reduce((total, { redemptions }) => total + redemptions, 0));
  return html`${renderFigures(
    ["Redemptions, last hour", sum(minutes, HOUR_MS)],
    ["Redemptions, last two days", sum(hours, 48 * HOUR_MS)],
  )}
<p class="fine">Redemptions are counted up to ${renderTime(completeUntil)}.</p>
`;
}

function renderRedemptions(site: OperatedSite, heading: string, { shown, next }: Cut<LastRedemption>): Html {
  return renderSection(
    "redemptions",
    heading,
    renderTable(
      "Redemptions",
      ["Redeemed", "Reference", "Voucher", "Product", "Price"],
      shown.map(({ redeemedAt, reference, voucherId, productName, priceUsd }) => [
        renderTime(redeemedAt, MINUTES),
        html`<bdi>${reference}</bdi>`,
        linkTo(site, "vouchers", voucherId),
        html`<bdi>${productName}</bdi>`,
        USD.format(priceUsd),
      ]),
      html`Nothing was redeemed yet. <a href="${site.basePath}${GUIDE_PATH}">The guide</a> shows partners how.`,
      STACKS,
    ),
    linkNext(next, "Earlier redemptions"),
  );
}

function renderBatches(site: OperatedSite, { shown, next }: Cut<BatchOfOrganization>, hasBrands: boolean): Html {
  return renderSection(
    "batches",
    "Batches",
    html`<p>What is left in a batch's windows is counted up to ${COUNT.format(LEFT_MAX)}. The batch's page counts all \
of its vouchers.</p>\n`,
    renderTable(
      "Batches",
      ["Batch", "Product", "Issued", "Left in windows", "Valid until"],
      shown.map((batch) => [
        linkTo(site, "batches", batch.id),
        html`<bdi>${batch.productName}</bdi>`,
        COUNT.format(batch.count),
        describeLeft(batch),
        html`${renderEnd(batch.validUntil)}${
          batch.isValid
            ? null
            : html` \
<span class="badge waiting">Expired</span>`
        }`,
      ]),
      html`There are no batches yet. A batch is issued on the page of a product. \
${hasBrands ? "The products are on the pages of the brands." : "A product belongs to a brand, which comes first."}`,
      STACKS,
    ),
    linkNext(next, "Earlier batches"),
  );
}

function renderKeys(site: OperatedSite, heading: string, { shown, next }: Cut<ListedKey>, empty: Html): Html {
  return renderSection(
    "keys",
    heading,
    renderTable(
      "API keys",
      ["Key", "State", "Last used", "Scopes", "Created"],
      // The search links to the element with a key's id.
      shown.map((key) => [
        html`<code id="${key.id}">${key.id}</code>${key.label === null ? null : html`<br>${key.label}`}`,
        html`${renderState(key)}${hasCap(key) ? html`<br>${sayCaps(key)}, ${sayToday(key)}` : null}\
${key.state === "Active" ? linkKeyActions(site, key) : null}`,
        key.oldSecretsUntil === null
          ? renderUse(key.lastUsedAt)
          : html`New secret: ${renderUse(key.currentSecretUsedAt)}<br>Previous: ${renderUse(key.oldSecretsUsedAt)}`,
        key.scopes.join(", "),
        renderTime(key.createdAt, MINUTES),
      ]),
      empty,
      STACKS,
    ),
    linkNext(next, "Earlier keys"),
  );
}

const renderUse = (usedAt: Date | null) => (usedAt === null ? "never" : renderTime(usedAt, MINUTES));

function describeLeft({ hasWindow, left }: BatchOfOrganization): string {
  if (!hasWindow) return "no window";
  return left > LEFT_MAX ? `more than ${COUNT.format(LEFT_MAX)}` : String(left);
}

const linkKeyActions = (site: OperatedSite, { id }: ListedKey) =>
  linkActions(site, ["keys", id], ["rotate", "Rotate"], ["change", "Limit"], ["revoke", "Revoke"]);

/** Shows a batch with the number of its vouchers in each status, and the sections of optional features (wings). */
export async function showBatch<Deps extends object>(
  visit: Visit<Deps>,
  ofWings: readonly Section<Deps>[],
): Promise<Html> {
  const { ctx, site, id, recordVisit } = visit;
  const batch = await readBatch(ctx, id);
  await recordVisit("page batch", { type: "Batch", id });
  const lineage = await readLineage(ctx, "batches", id);
  const sections: Html[] = [];
  for (const render of ofWings) sections.push(await render(visit, lineage));
  const { claim, buy } = batch.windows;
  const unused = batch.active + batch.suspended;
  const kinds = [claim === null ? [] : ["claim"], buy === null ? [] : ["buy"]].flat();
  return layOutForOperators(
    site,
    `Batch of ${batch.productName}`,
    html`${renderTrail(site, lineage)}<h1>Batch of <bdi>${batch.productName}</bdi></h1>
${renderFigures(
  ["Active", COUNT.format(batch.active)],
  ...(batch.left === null ? [] : [["Left in windows", COUNT.format(batch.left)] as const]),
  ...(batch.suspended === 0 ? [] : [["Suspended", COUNT.format(batch.suspended)] as const]),
  ["Redeemed", COUNT.format(batch.redeemed)],
  ["Expired", COUNT.format(batch.expired)],
  ["Voided", COUNT.format(batch.voided)],
  ["Issued", COUNT.format(batch.count)],
)}
${renderFacts([
  ["Id", html`<code>${id}</code>`],
  ["Product", linkTo(site, "products", batch.productId, batch.productName)],
  ["Price", USD.format(batch.priceUsd)],
  ["Audience", batch.audience],
  ["Windows", kinds.length === 0 ? "none" : kinds.join(", ")],
  ["Valid until", renderEnd(batch.validUntil)],
  ["Suspended", batch.suspendedAt && html`since ${renderTime(batch.suspendedAt)}: ${batch.suspensionReason}`],
])}
${linkActions(
  site,
  ["batches", id],
  ["print", "Print sheet"],
  ...(unused + batch.expired === 0 ? [] : [["extend", "Extend the batch"] as const]),
  ...(batch.suspendedAt === null && batch.active > 0 ? [["suspend", "Suspend the batch"] as const] : []),
  ...(batch.suspendedAt === null ? [] : [["resume", "Resume the batch"] as const]),
  ...(unused === 0 ? [] : [["void", "Void the batch"] as const]),
)}
${
  site.offers(`/batches/${id}/codes.csv`)
    ? html`<form action="${opsPath(site, "batches", id)}/codes.csv" method="post"><p class="actions">\
<button type="submit">Codes as CSV</button></p></form>`
    : null
}
${linkActions(site, ["organizations", lineage.organizationId], ["keys/new", "New API key"])}${sections}`,
  );
}
