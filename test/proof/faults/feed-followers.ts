import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { until } from "../../support/until.ts";
import type { CalledApi, CallerOptions } from "./exchange.ts";
import type { SuppliedKey, Violation } from "./history.ts";
import { type Answer, sendCall } from "./http-call.ts";

/**
 * The page sizes of the two followers. The one with the small pages sometimes lags, so that faults come between its
 * pages.
 */
const LIMITS = [7, 1_000];
/** Longer than a call may wait for an event. Milliseconds. */
const TIMEOUT_MS = 5_000;
const PAUSE_MS = { min: 20, max: 200 };
const REST_LIMIT = 1_000;

/** What a follower has read: voucher and sequence of each event, in the order of arrival. */
interface Followed {
  key: SuppliedKey;
  limit: number;
  cursor: string | null;
  read: string[];
  /** Refusals of its cursor. */
  refused: string[];
}

/** Follows the feed of a key's organization until `goesOn` returns false. Each page comes from a random process. */
export function startFeedFollowers(
  key: SuppliedKey,
  { name, random, apis, signal }: Omit<CallerOptions, "history">,
  goesOn: () => boolean,
): { followed: Followed[]; following: Promise<void>[] } {
  const followed = LIMITS.map((limit): Followed => ({ key, limit, cursor: null, read: [], refused: [] }));
  const following = followed.map(async (one) => {
    const own = random.fork(`${name}-${one.limit}`);
    while (goesOn() && !signal.aborted) {
      await readPage(one, own.pick(apis));
      await sleep(own.between(PAUSE_MS.min, PAUSE_MS.max));
    }
  });
  return { followed, following };
}

async function readPage(one: Followed, { url }: CalledApi, limit = one.limit): Promise<Answer> {
  const after = one.cursor === null ? "" : `&after=${encodeURIComponent(one.cursor)}`;
  const call = { method: "GET", key: one.key.secret, timeoutMs: TIMEOUT_MS } as const;
  const answer = await sendCall({ ...call, url: `${url}/partner/events?wait=1&limit=${limit}${after}` });
  const { status, body } = answer;
  if (status === 200) {
    one.read.push(...body.events.map(({ entityId, sequence }: Listed) => `${entityId} ${sequence}`));
    one.cursor = body.nextCursor;
  } else if (status !== null && status < 500) one.refused.push(`${status} ${body?.error}`);
  return answer;
}

type Listed = Record<"entityId" | "sequence", string | number>;

/**
 * Expects that each follower has read exactly the database's events in their final order, and that the service refused
 * no cursor.
 */
export async function checkFollowed(
  db: pg.Pool,
  apis: readonly CalledApi[],
  followed: readonly Followed[],
): Promise<Violation[]> {
  const problems: string[] = [];
  for (const one of followed) {
    let wanted: string[] = [];
    await until(async () => {
      const { status, body } = await readPage(one, apis[0] as CalledApi, REST_LIMIT);
      wanted = await selectInOrder(db, one.key.organizationId);
      return status === 200 && body.events.length === 0 && one.read.length >= wanted.length;
    }).catch(() => problems.push(`it read ${one.read.length} of ${wanted.length} events`));
    const at = one.read.findIndex((event, index) => event !== wanted[index]);
    if (at >= 0) problems.push(`event ${at + 1} was ${one.read[at]}, and is ${wanted[at]}`);
    problems.push(...one.refused);
  }
  return problems.map((detail) => ({ rule: "the feed is read in its final order", detail, exchanges: [] }));
}

async function selectInOrder(db: pg.Pool, organizationId: string): Promise<string[]> {
  const { rows } = await db.query<{ event: string }>(
    `SELECT e.voucher_id || ' ' || e.sequence AS event
       FROM voucher_events AS e JOIN vouchers AS v ON v.id = e.voucher_id
      WHERE v.organization_id = $1 ORDER BY e.log_slot`,
    [organizationId],
  );
  return rows.map(({ event }) => event);
}
