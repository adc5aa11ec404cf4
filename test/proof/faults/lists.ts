import type { AskFor, Exchange, History, ListAsk, Violation } from "./history.ts";
import type { Records } from "./records.ts";

/** Maximum number of reported violations of each rule. One fault may cause thousands. */
const REPORTED_MAX = 6;

type Page = Exchange<AskFor<"list">>;

/** A position in a list. Without a voucher, it is before all redemptions of that time. */
interface Place {
  redeemedAtMs: number;
  voucherId: string;
}

/** A redemption in an answer, a webhook or the database. */
interface Known extends Place {
  organizationId: string;
  /** Null if a webhook or the database shows the redemption. */
  exchange: Exchange | null;
}

/**
 * Checks that each page has exactly the redemptions of its organization, in order, from the page's start to its end.
 * The start is `from`, or the cursor of an earlier page. A full page ends at its last redemption, any other page at its
 * `completeUntil`. The redemptions are known from the answers and webhooks of the whole run, and from the database.
 */
export function checkLists(history: History, records: Records | null): Violation[] {
  const known = knownOf(history, records);
  const broken = history.of("list").flatMap((page) => (page.status === 200 ? brokenBy(page, known, records) : []));
  const byRule = Map.groupBy(broken, ({ rule }) => rule);
  return [...byRule.values()].flatMap((ofRule) => ofRule.slice(0, REPORTED_MAX));
}

/** Returns the next request after a page, or null if the page has no cursor. */
export function pageAfter({ ask, body }: Page): ListAsk | null {
  const { nextCursor: cursor } = body;
  if (cursor === null) return null;
  const { redeemedAtMs, voucherId } = listedOn({ body }).at(-1) ?? beginOf(ask);
  return { ...ask, after: { cursor, redeemedAt: new Date(redeemedAtMs).toISOString(), voucherId } };
}

/**
 * Files of the portal show whole seconds. Gives each redemption in such a file its exact time, if the database has the
 * redemption in this second.
 */
export function restoreTimes(history: History, { redemptionsByVoucher }: Records): void {
  const files = history.of("list").filter(({ ask, status }) => ask.file === "portal" && status === 200);
  for (const one of files.flatMap(({ body }) => body.redemptions)) {
    const atMs = redemptionsByVoucher.get(one.voucherInstanceId)?.redeemedAtMs ?? Number.NaN;
    const sinceMs = atMs - Date.parse(one.redeemedAt);
    if (sinceMs >= 0 && sinceMs < 1_000) one.redeemedAt = new Date(atMs).toISOString();
  }
}

function brokenBy(page: Page, known: ReadonlyMap<string, Known[]>, records: Records | null): Violation[] {
  const { ask, body } = page;
  const { organizationId } = ask.key;
  const listed = listedOn(page);
  const listedIds = new Set(listed.map(({ voucherId }) => voucherId));
  const [begin, completeUntil] = [beginOf(ask), placeAt(body.completeUntil)];
  const end = listed.length < ask.limit ? completeUntil : (listed.at(-1) as Place);
  const isIn = (until: Place) => (one: Place) => isBefore(begin, one) && isBefore(one, until);
  const missing = (known.get(organizationId) ?? []).filter((one) => isIn(end)(one) && !listedIds.has(one.voucherId));
  const outside = listed.filter((one) => !isIn(completeUntil)(one));
  const unordered = listed.slice(1).filter((one, at) => !isBefore(listed[at] as Place, one));
  const unknown = listed.filter((one) => records !== null && !isRecorded(records, organizationId, one));
  const surplus = listed.slice(ask.limit);
  const report = (rule: string, detail: string, exchanges: readonly (Exchange | null)[] = []): Violation => {
    return { rule, detail, exchanges: [...exchanges.filter((one) => one !== null), page] };
  };
  return [
    ...missing.map((one) =>
      report("a list never changes before its completeUntil", `it lacks ${tell(one)}`, [one.exchange]),
    ),
    ...outside.map((one) => report("a list has only redemptions of its range", `it has ${tell(one)}`)),
    ...unordered.map((one) => report("a list is in order and has each redemption once", `${tell(one)} is not next`)),
    ...unknown.map((one) => report("a list has only its organization's redemptions", `it has ${tell(one)}`)),
    ...surplus.map((one) => report("a page has at most as many redemptions as its limit", `it has ${tell(one)}`)),
    ...(body.nextCursor === null ? [report("a list without an end has a next page", "it has no cursor")] : []),
  ];
}

const tell = ({ voucherId, redeemedAtMs }: Place) => `${voucherId} of ${new Date(redeemedAtMs).toISOString()}`;
const placeAt = (time: string, voucherId = ""): Place => ({ redeemedAtMs: Date.parse(time), voucherId });

function isBefore(one: Place, other: Place): boolean {
  if (one.redeemedAtMs !== other.redeemedAtMs) return one.redeemedAtMs < other.redeemedAtMs;
  return one.voucherId < other.voucherId;
}

function beginOf({ from, after }: ListAsk): Place {
  return after === null ? placeAt(from) : placeAt(after.redeemedAt, after.voucherId);
}

function listedOn({ body }: Pick<Page, "body">): Place[] {
  const shown: { redeemedAt: string; voucherInstanceId: string }[] = body.redemptions;
  return shown.map(({ redeemedAt, voucherInstanceId }) => placeAt(redeemedAt, voucherInstanceId));
}

function isRecorded({ redemptionsByVoucher }: Records, organizationId: string, one: Place): boolean {
  const recorded = redemptionsByVoucher.get(one.voucherId);
  return recorded?.organizationId === organizationId && recorded.redeemedAtMs === one.redeemedAtMs;
}

/** Collects every redemption in an answer, a webhook or the database, by organization. */
function knownOf({ exchanges, webhooks }: History, records: Records | null): ReadonlyMap<string, Known[]> {
  const told = webhooks.map(({ organizationId, redeemedAt, voucherId }): Known => {
    return { ...placeAt(redeemedAt, voucherId), organizationId, exchange: null };
  });
  const recorded = [...(records?.redemptionsByVoucher.values() ?? [])].map(
    ({ organizationId, redeemedAtMs, voucherId }): Known => ({
      organizationId,
      redeemedAtMs,
      voucherId,
      exchange: null,
    }),
  );
  const all = [...recorded, ...told, ...exchanges.flatMap(showsOf)];
  // If answers show two different times of one redemption, both are kept, because one of them is wrong.
  const once = new Map(all.map((one) => [`${one.organizationId} ${one.voucherId} ${one.redeemedAtMs}`, one]));
  return Map.groupBy(once.values(), ({ organizationId }) => organizationId);
}

function showsOf(exchange: Exchange): Known[] {
  const { ask, status, body } = exchange;
  if (status !== 200 || !("key" in ask)) return [];
  const { organizationId } = ask.key;
  switch (ask.operation) {
    case "redeem":
    case "redemption":
      return [{ ...placeAt(body.redeemedAt, body.voucherInstanceId), organizationId, exchange }];
    case "lookUp":
      if (body.status !== "Redeemed") return [];
      return [{ ...placeAt(body.redeemedAt, ask.voucher.id), organizationId, exchange }];
    case "list":
      return listedOn(exchange as Page).map((one) => ({ ...one, organizationId, exchange }));
    default:
      return [];
  }
}
