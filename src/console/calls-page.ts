import { findOrganization } from "../core/catalog/db/catalog.ts";
import { CALLS_MAX, NO_ORGANIZATION, type PartnerCall, readCalls } from "../core/processes/partner-calls.ts";
import { type Html, html } from "../pages/html.ts";
import {
  COUNT,
  layOutForOperators,
  linkNext,
  opsPath,
  renderFigures,
  renderSteps,
  renderTable,
  STACKS,
  sectionStep,
} from "../pages/operator-frame.ts";
import { renderTime } from "../pages/time.ts";
import { AppError } from "../platform/api/errors.ts";
import type { DepsOf } from "../platform/http/endpoint.ts";
import type { Page, Visit } from "./visit.ts";

/** Maximum number of calls on one page. */
const PAGE_MAX = 100;

/** An organization's calls of the last hour: all calls, the calls of one key, or the calls with one request id. */
export const callsPage: Page<DepsOf<typeof readCalls>> = async (visit) => {
  const { ctx, site, id } = visit;
  const organization = await findOrganization(ctx.pool, id);
  if (organization === null) throw new AppError("not_found", "There is no organization with this id.");
  const path = opsPath(site, "organizations", id, "calls");
  const trail = renderSteps(
    [
      sectionStep(site, "Organizations"),
      { path: opsPath(site, "organizations", id), label: organization.name },
      { path, label: "Last calls" },
    ],
    organization,
  );
  return showCalls(visit, { id, path, title: `Last calls of ${organization.name}`, trail });
};

/** The refused and failed calls of the last hour with an unknown key. */
export const unknownCallsPage: Page<DepsOf<typeof readCalls>> = async (visit) =>
  showCalls(visit, {
    id: NO_ORGANIZATION,
    path: opsPath(visit.site, "calls"),
    title: "Calls with unknown keys",
    trail: null,
  });

interface CallsOf {
  id: string;
  path: string;
  title: string;
  trail: Html | null;
}

async function showCalls(visit: Visit<DepsOf<typeof readCalls>>, { id, path, title, trail }: CallsOf): Promise<Html> {
  const { ctx, site, query, number, recordVisit } = visit;
  const [key, request, skip] = [query("key"), query("request"), number("skip", 0, CALLS_MAX) ?? 0];
  const calls = await readCalls(ctx, id).catch((cause: unknown) => {
    throw new AppError("unavailable", "Redis does not answer at the moment.", { cause });
  });
  await recordVisit("page calls", { type: "Organization", id });
  const chosen = calls.filter(
    ({ keyId, requestId }) => (key === "" || keyId === key) && (request === "" || requestId === request),
  );
  const shown = chosen.slice(skip, skip + PAGE_MAX);
  const more = chosen.length > skip + PAGE_MAX;
  const next = new URLSearchParams({ ...(key && { key }), ...(request && { request }), skip: String(skip + PAGE_MAX) });
  const countOf = (some: readonly PartnerCall[]) => some.reduce((sum, { count = 1 }) => sum + count, 0);
  return layOutForOperators(
    site,
    title,
    html`${trail}<h1>${trail === null ? title : "Last calls"}</h1>
${renderFigures(
  ["Calls shown here", COUNT.format(countOf(chosen))],
  ["Answered with an error", COUNT.format(countOf(chosen.filter(({ status }) => status >= 400)))],
)}
<p class="fine">The newest 200 answered calls of the last hour and, apart from them, the newest 1,000 that were \
refused or failed. They appear after a second. Calls over a limit (429) are counted for each minute, without \
their request ids.
Neither bodies nor codes nor references are kept. An id after <code>given:</code> was sent by the caller, and may \
repeat; if it is no UUID, its digest is shown. The search finds a call by the id itself.</p>
${
  key === "" && request === ""
    ? null
    : html`<p>Only ${key === "" ? "request" : "key"} <code>${key || request}</code>. \
<a href="${path}">All calls</a></p>`
}
${renderTable(
  "Last calls",
  ["Time", "Key", "Call", "Status", "Error", "Duration", "Request"],
  shown.map((call) => renderCall(call, path)),
  "No calls within the last hour. A call appears here after a second.",
  STACKS,
)}${linkNext(more ? `${path}?${next}` : null, "Earlier calls")}`,
  );
}

function renderCall(call: PartnerCall, path: string): (Html | string)[] {
  const { at, keyId, route, status, errorCode, durationMs, requestId, count } = call;
  return [
    renderTime(at),
    keyId === null ? "unknown" : html`<a href="${path}?key=${encodeURIComponent(keyId)}"><code>${keyId}</code></a>`,
    route,
    String(status),
    errorCode ?? "",
    durationMs === null ? "" : `${COUNT.format(durationMs)} ms`,
    requestId === null ? html`<strong>${COUNT.format(count ?? 1)} calls</strong>` : html`<code>${requestId}</code>`,
  ];
}
