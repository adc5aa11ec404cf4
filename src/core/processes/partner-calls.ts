import type { Logger } from "pino";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";

/** Interval at which a process writes the calls that it has noted. Milliseconds. */
const WRITE_EVERY_MS = 1_000;
/** How long a call is kept. Milliseconds. */
const KEPT_MS = 3_600_000;
/** Maximum number of kept calls of an organization: some 80 kB of Redis. The newest are kept. */
export const CALLS_MAX = 200;
/** Maximum number of organizations whose calls are kept: 80 MB of Redis. Those that called last are kept. */
const ORGANIZATIONS_MAX = 1_000;
/** Maximum number of a process's calls that wait to be written, of all organizations together: a megabyte. */
const WAITING_MAX = 2_000;
/** Organizations whose calls are searched for a request id in one round trip. */
const PORTION = 500;

/** A partner's call as operators see it: without its body, and with the route instead of the path. */
export interface PartnerCall {
  at: Date;
  keyId: string;
  /** Method and pattern. */
  route: string;
  status: number;
  errorCode: string | null;
  durationMs: number;
  /** The digest of the id, if the caller has chosen the id. */
  requestId: string;
}

/** A call that has just ended. It has no time of the database's clock yet. */
interface NotedCall extends Omit<PartnerCall, "at"> {
  /** The end of the call on the monotonic clock. Milliseconds. */
  endedAtMs: number;
}

/** The braces keep all keys in one slot of a Redis Cluster. */
const prefixOf = ({ id }: Pick<DeploymentIdentity, "id">) => `{pva:${id}:calls}`;
const callsKey = (prefix: string, organizationId: string) => `${prefix}:of:${organizationId}`;
/** The Redis key of the request ids of an organization's calls, by which a call is found. */
const requestsKey = (prefix: string, organizationId: string) => `${prefix}:requests:${organizationId}`;
const organizationsKey = (prefix: string) => `${prefix}:organizations`;

interface PartnerCallsDeps {
  redis: RedisClient;
  deployment: DatabaseFence;
  log: Logger;
  /** Called for calls that operators will not see, because Redis does not take them in time. */
  onDropped: (calls: number) => void;
}

/**
 * Notes partners' calls in memory and writes them to Redis once a second. What Redis does not take in time is dropped
 * and counted.
 */
export class PartnerCalls {
  readonly #deps: PartnerCallsDeps;
  readonly #timer: NodeJS.Timeout;
  /** The newest calls of each organization; from `CALLS_MAX` on, each replaces the oldest. */
  #waiting = new Map<string, { calls: NotedCall[]; noted: number }>();
  #waitingCount = 0;
  #writing: Promise<void> | null = null;

  constructor(deps: PartnerCallsDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => void this.write(), WRITE_EVERY_MS).unref();
  }

  /** Keeps a call in memory until the next write. Costs no round trip. */
  note(organizationId: string, call: NotedCall): void {
    let own = this.#waiting.get(organizationId);
    if (own !== undefined && own.calls.length === CALLS_MAX) {
      own.calls[own.noted % CALLS_MAX] = call;
      own.noted += 1;
      return;
    }
    if (this.#waitingCount >= WAITING_MAX) {
      this.#deps.onDropped(1);
      return;
    }
    if (own === undefined) {
      own = { calls: [], noted: 0 };
      this.#waiting.set(organizationId, own);
    }
    own.calls.push(call);
    own.noted += 1;
    this.#waitingCount += 1;
  }

  /** Writes the waiting calls, unless an earlier write has not ended. Never rejects. */
  async write(): Promise<void> {
    if (this.#writing !== null) return;
    this.#writing = this.#writeWaiting();
    await this.#writing;
    this.#writing = null;
  }

  /** Waits for the write under way, then writes the last calls. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    await this.#writeWaiting();
  }

  async #writeWaiting(): Promise<void> {
    if (this.#waitingCount === 0) return;
    const [waiting, count] = [this.#waiting, this.#waitingCount];
    [this.#waiting, this.#waitingCount] = [new Map(), 0];
    try {
      await this.#send(waiting);
    } catch (error) {
      this.#deps.onDropped(count);
      this.#deps.log.debug({ err: error, calls: count }, "calls of partners could not be written for operators");
    }
  }

  async #send(waiting: ReadonlyMap<string, { calls: readonly NotedCall[] }>): Promise<void> {
    const { redis, deployment } = this.#deps;
    const prefix = prefixOf(deployment);
    const nowMs = deployment.clock.steadyNow().getTime();
    const startMs = nowMs - performance.now();
    const sent = redis.pipeline();
    const addTo = (key: string, members: (string | number)[], membersMax: number) => {
      sent.zadd(key, ...members).zremrangebyscore(key, "-inf", nowMs - KEPT_MS);
      sent.zremrangebyrank(key, 0, -membersMax - 1).pexpire(key, KEPT_MS);
    };
    for (const [organizationId, { calls }] of waiting) {
      const timed = calls.map(({ endedAtMs, ...call }) => ({ at: Math.round(startMs + endedAtMs), ...call }));
      const described = timed.flatMap((call) => [call.at, JSON.stringify(call)]);
      addTo(callsKey(prefix, organizationId), described, CALLS_MAX);
      const requests = timed.flatMap(({ at, requestId }) => [at, requestId]);
      addTo(requestsKey(prefix, organizationId), requests, CALLS_MAX);
    }
    const organizations = [...waiting.keys()].flatMap((id) => [nowMs, id]);
    const key = organizationsKey(prefix);
    addTo(key, organizations, Number.MAX_SAFE_INTEGER - 1);
    sent.zrange(key, 0, String(-ORGANIZATIONS_MAX - 1));
    const replies = (await sent.exec()) ?? [];
    const failed = replies.find(([error]) => error !== null);
    if (failed !== undefined) throw failed[0];
    await this.#forget(prefix, replies.at(-1)?.[1] as string[]);
  }

  /** Removes the calls of the organizations that have been quiet for longest. */
  async #forget(prefix: string, organizationIds: readonly string[]): Promise<void> {
    if (organizationIds.length === 0) return;
    const { redis } = this.#deps;
    const keys = organizationIds.flatMap((id) => [callsKey(prefix, id), requestsKey(prefix, id)]);
    await redis
      .pipeline()
      .zrem(organizationsKey(prefix), ...organizationIds)
      .unlink(...keys)
      .exec();
  }
}

/**
 * The calls of an organization in the last hour, the newest first, at most 200.
 * @throws Error when Redis does not answer.
 */
export async function readCalls(
  { redis, deployment }: { redis: RedisClient; deployment: DatabaseFence },
  organizationId: string,
): Promise<PartnerCall[]> {
  const sinceMs = deployment.clock.steadyNow().getTime() - KEPT_MS;
  const found = await redis.zrevrangebyscore(callsKey(prefixOf(deployment), organizationId), "+inf", sinceMs);
  return found.map((text) => {
    const call = JSON.parse(text);
    return { ...call, at: new Date(call.at) };
  });
}

/**
 * The organizations with a call of the last hour that had this request id, those that called last first. Several
 * organizations may have sent the same id.
 * @throws Error when Redis does not answer.
 */
export async function findCallers(
  { redis, deployment }: { redis: RedisClient; deployment: DatabaseFence },
  requestId: string,
  max: number,
): Promise<string[]> {
  const prefix = prefixOf(deployment);
  const sinceMs = deployment.clock.steadyNow().getTime() - KEPT_MS;
  const organizations = await redis.zrevrangebyscore(organizationsKey(prefix), "+inf", sinceMs);
  const found: string[] = [];
  for (let at = 0; at < organizations.length && found.length < max; at += PORTION) {
    const portion = organizations.slice(at, at + PORTION);
    const asked = redis.pipeline();
    for (const id of portion) asked.zscore(requestsKey(prefix, id), requestId);
    const scores = (await asked.exec()) ?? [];
    found.push(...portion.filter((_, index) => Number(scores[index]?.[1] ?? 0) >= sinceMs));
  }
  return found.slice(0, max);
}
