import type { Logger } from "pino";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";

/** Interval at which a process writes its noted calls. Milliseconds. */
const WRITE_EVERY_MS = 1_000;
/** How long a call is kept. Milliseconds. */
const KEPT_MS = 3_600_000;
/**
 * Two lists of calls: answered ones, and refused or failed ones. They are separate, so that neither displaces the
 * other. Each list keeps the newest calls of the organizations that called most recently, in at most 80 MB of Redis.
 */
const LISTS = {
  answered: { infix: "", callsMax: 200, organizationsMax: 1_000 },
  failed: { infix: ":failed", callsMax: 1_000, organizationsMax: 200 },
} as const;
type List = keyof typeof LISTS;
const LIST_NAMES = Object.keys(LISTS) as List[];
/** Maximum number of an organization's calls in one read, from both lists and the counts of calls over a limit. */
export const CALLS_MAX = 2_000;
/** Calls over a limit are counted per period of this length. Milliseconds. */
const MINUTE_MS = 60_000;
/** Maximum number of counters of calls over a limit between two writes: one per organization, key, route and error. */
const LIMITED_MAX = 500;
/** Stands for the organization of calls with an unknown key. */
export const NO_ORGANIZATION = "none";
/** Maximum number of calls, of all organizations together, that wait in a process to be written: a megabyte. */
const WAITING_MAX = 2_000;
/** Number of organizations whose calls are searched for a request id in one round trip. */
const PORTION = 500;

/** A partner's call as operators see it. It has no body, and the route instead of the path. */
export interface PartnerCall {
  at: Date;
  /** Null if the key is unknown. */
  keyId: string | null;
  /** Method and pattern. */
  route: string;
  status: number;
  errorCode: string | null;
  /** Null if the entry stands for several calls. */
  durationMs: number | null;
  /** A digest, if the caller has chosen the id itself. Null if the entry stands for several calls. */
  requestId: string | null;
  /** The number of calls, if the entry stands for all calls over a limit in one minute. */
  count?: number;
}

/** A call that has just ended. Its time on the database's clock is added later. */
interface NotedCall extends Omit<PartnerCall, "at" | "count"> {
  /** When the call ended, on the monotonic clock. Milliseconds. */
  endedAtMs: number;
  requestId: string;
}

/** An organization's newest calls that wait for a write. A new call replaces the oldest if the list is full. */
interface Waiting {
  list: List;
  organizationId: string;
  calls: NotedCall[];
  noted: number;
}

/** The braces keep all keys in one slot of a Redis Cluster. */
const prefixOf = ({ id }: Pick<DeploymentIdentity, "id">) => `{pva:${id}:calls}`;

/** The Redis keys of an organization's calls, of the request ids of these calls, and of the list's organizations. */
const keysOf = (prefix: string, list: List, organizationId: string) => {
  const start = prefix + LISTS[list].infix;
  return {
    calls: `${start}:of:${organizationId}`,
    requests: `${start}:requests:${organizationId}`,
    organizations: `${start}:organizations`,
  };
};

/** The Redis key of the counts of an organization's calls over a limit in one minute. */
const limitedKey = (prefix: string, organizationId: string, minuteMs: number) =>
  `${prefix}:limited:${organizationId}:${minuteMs}`;

interface PartnerCallsDeps {
  redis: RedisClient;
  deployment: DatabaseFence;
  log: Logger;
  /** Called with the number of calls that operators will not see because Redis did not accept them in time. */
  onDropped: (calls: number) => void;
}

/** Writes partners' calls to Redis once a second. Drops and counts calls that Redis does not accept in time. */
export class PartnerCalls {
  readonly #deps: PartnerCallsDeps;
  readonly #timer: NodeJS.Timeout;
  #waiting = new Map<string, Waiting>();
  #waitingCount = 0;
  /** The number of calls over a limit, by organization, key, route and error, as JSON. */
  #limited = new Map<string, number>();
  #writing: Promise<void> | null = null;

  constructor(deps: PartnerCallsDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => void this.write(), WRITE_EVERY_MS).unref();
  }

  /**
   * Keeps a call in memory until the next write. Only counts calls over a limit, because a flood's calls are similar.
   */
  note(ofOrganization: string | null, call: NotedCall): void {
    const organizationId = ofOrganization ?? NO_ORGANIZATION;
    if (call.status === 429) {
      this.#count(JSON.stringify([organizationId, call.keyId, call.route, call.errorCode]));
      return;
    }
    const list = call.status < 400 ? "answered" : "failed";
    const { callsMax } = LISTS[list];
    const name = `${list} ${organizationId}`;
    let own = this.#waiting.get(name);
    if (own !== undefined && own.calls.length === callsMax) {
      own.calls[own.noted % callsMax] = call;
      own.noted += 1;
      return;
    }
    if (this.#waitingCount >= WAITING_MAX) {
      this.#deps.onDropped(1);
      return;
    }
    if (own === undefined) {
      own = { list, organizationId, calls: [], noted: 0 };
      this.#waiting.set(name, own);
    }
    own.calls.push(call);
    own.noted += 1;
    this.#waitingCount += 1;
  }

  #count(kind: string): void {
    const counted = this.#limited.get(kind);
    if (counted === undefined && this.#limited.size >= LIMITED_MAX) this.#deps.onDropped(1);
    else this.#limited.set(kind, (counted ?? 0) + 1);
  }

  /** Writes the waiting calls, unless an earlier write is still running. Never rejects. */
  async write(): Promise<void> {
    if (this.#writing !== null) return;
    this.#writing = this.#writeWaiting();
    await this.#writing;
    this.#writing = null;
  }

  /** Waits for a running write, then writes the last calls. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    await this.#writeWaiting();
  }

  async #writeWaiting(): Promise<void> {
    if (this.#waitingCount === 0 && this.#limited.size === 0) return;
    const [waiting, count, limited] = [this.#waiting, this.#waitingCount, this.#limited];
    [this.#waiting, this.#waitingCount, this.#limited] = [new Map(), 0, new Map()];
    try {
      await this.#send([...waiting.values()], limited);
    } catch (error) {
      const calls = [...limited.values()].reduce((sum, one) => sum + one, count);
      this.#deps.onDropped(calls);
      this.#deps.log.debug({ err: error, calls }, "calls of partners could not be written for operators");
    }
  }

  async #send(waiting: readonly Waiting[], limited: ReadonlyMap<string, number>): Promise<void> {
    const { redis, deployment } = this.#deps;
    const prefix = prefixOf(deployment);
    const nowMs = deployment.clock.steadyNow().getTime();
    const startMs = nowMs - performance.now();
    const sent = redis.pipeline();
    const addTo = (key: string, members: (string | number)[], membersMax: number) => {
      sent.zadd(key, ...members).zremrangebyscore(key, "-inf", nowMs - KEPT_MS);
      sent.zremrangebyrank(key, 0, -membersMax - 1).pexpire(key, KEPT_MS);
    };
    for (const { list, organizationId, calls } of waiting) {
      const keys = keysOf(prefix, list, organizationId);
      const timed = calls.map(({ endedAtMs, ...call }) => ({ at: Math.round(startMs + endedAtMs), ...call }));
      const described = timed.flatMap((call) => [call.at, JSON.stringify(call)]);
      addTo(keys.calls, described, LISTS[list].callsMax);
      const requests = timed.flatMap(({ at, requestId }) => [at, requestId]);
      addTo(keys.requests, requests, LISTS[list].callsMax);
      addTo(keys.organizations, [nowMs, organizationId], Number.MAX_SAFE_INTEGER - 1);
    }
    for (const [kind, count] of limited) {
      const [organizationId, ...call] = JSON.parse(kind);
      const key = limitedKey(prefix, organizationId, nowMs - (nowMs % MINUTE_MS));
      sent.zincrby(key, count, JSON.stringify(call)).pexpire(key, KEPT_MS);
    }
    const replies = (await sent.exec()) ?? [];
    const failed = replies.find(([error]) => error !== null);
    if (failed !== undefined) throw failed[0];
    for (const list of new Set(waiting.map((one) => one.list))) await this.#forget(prefix, list);
  }

  /** Removes from a list the organizations with the oldest last calls, when there are too many. */
  async #forget(prefix: string, list: List): Promise<void> {
    const { redis } = this.#deps;
    const { organizations } = keysOf(prefix, list, "");
    const quiet = await redis.zrange(organizations, 0, String(-LISTS[list].organizationsMax - 1));
    if (quiet.length === 0) return;
    const forgotten = quiet.map((id) => keysOf(prefix, list, id));
    await redis
      .pipeline()
      .zrem(organizations, ...quiet)
      .unlink(...forgotten.flatMap(({ calls, requests }) => [calls, requests]))
      .exec();
  }
}

/**
 * The calls of an organization in the last hour, newest first. Calls over a limit form one entry for each minute, key,
 * route and error.
 * @throws Error when Redis does not answer.
 */
export async function readCalls(
  { redis, deployment }: { redis: RedisClient; deployment: DatabaseFence },
  organizationId: string,
): Promise<PartnerCall[]> {
  const prefix = prefixOf(deployment);
  const nowMs = deployment.clock.steadyNow().getTime();
  const sinceMs = nowMs - KEPT_MS;
  const minutes = Array.from(
    { length: KEPT_MS / MINUTE_MS },
    (_, ago) => nowMs - (nowMs % MINUTE_MS) - ago * MINUTE_MS,
  );
  const asked = redis.pipeline();
  for (const list of LIST_NAMES) asked.zrevrangebyscore(keysOf(prefix, list, organizationId).calls, "+inf", sinceMs);
  for (const minuteMs of minutes) asked.zrange(limitedKey(prefix, organizationId, minuteMs), 0, "-1", "WITHSCORES");
  const found = ((await asked.exec()) ?? []).map(([error, texts]) => {
    if (error !== null) throw error;
    return texts as string[];
  });
  const single = found.slice(0, LIST_NAMES.length).flatMap((texts) => texts.map((text) => JSON.parse(text)));
  const counted = minutes.flatMap((minuteMs, index) =>
    readLimited(new Date(Math.min(nowMs, minuteMs + MINUTE_MS - 1)), found[LIST_NAMES.length + index] ?? []),
  );
  return [...single.map((call) => ({ ...call, at: new Date(call.at) })), ...counted]
    .toSorted((a, b) => b.at.getTime() - a.at.getTime())
    .slice(0, CALLS_MAX);
}

/** The calls over a limit in the minute that ends at `at`. In the array, each member is followed by its score. */
function readLimited(at: Date, members: readonly string[]): PartnerCall[] {
  return members.flatMap((text, place) => {
    if (place % 2 === 1) return [];
    const [keyId, route, errorCode] = JSON.parse(text);
    const count = Number(members[place + 1]);
    return [{ at, keyId, route, status: 429, errorCode, durationMs: null, requestId: null, count }];
  });
}

/**
 * The organizations that had a call with this request id in the last hour: first those with an answered call, then
 * those with a failed one. Several organizations may have sent the same id.
 * @throws Error when Redis does not answer.
 */
export async function findCallers(
  { redis, deployment }: { redis: RedisClient; deployment: DatabaseFence },
  requestId: string,
  max: number,
): Promise<string[]> {
  const prefix = prefixOf(deployment);
  const sinceMs = deployment.clock.steadyNow().getTime() - KEPT_MS;
  const found = new Set<string>();
  for (const list of LIST_NAMES) {
    const organizations = await redis.zrevrangebyscore(keysOf(prefix, list, "").organizations, "+inf", sinceMs);
    for (let at = 0; at < organizations.length && found.size < max; at += PORTION) {
      const portion = organizations.slice(at, at + PORTION);
      const asked = redis.pipeline();
      for (const id of portion) asked.zscore(keysOf(prefix, list, id).requests, requestId);
      const scores = (await asked.exec()) ?? [];
      for (const [index, id] of portion.entries()) if (Number(scores[index]?.[1] ?? 0) >= sinceMs) found.add(id);
    }
  }
  return [...found].slice(0, max);
}
