import type { ReportedProcess } from "../core/processes/read-processes.ts";
import type { Outcomes } from "../core/processes/redeem-outcomes.ts";
import { redeemQueue } from "../core/redeem/job.ts";
import type { QueueBacklog } from "../platform/queues/measure-queues.ts";
import { QUEUES } from "../platform/queues/queue-settings.ts";
import type { Shard } from "../platform/queues/shards.ts";
import { refuses } from "../platform/redis/requirements.ts";
import { countMissingStandbys } from "./count-missing-standbys.ts";
import { type Facts, unlessHidden } from "./facts.ts";
import type { Found } from "./found.ts";

type AnyQueue = (typeof QUEUES)[number];

/** How long what a probe finds must last, because a probe can be slow by chance. Milliseconds. */
const AGAIN_MS = 3_000;
/** How long no worker may report after the last heartbeat: replacing workers takes some seconds. Milliseconds. */
const REPLACED_MS = 10_000;
const EVERYONE = "All organizations";

const isUp = ({ state }: ReportedProcess) => state === "up";
/** Removes the full stop, because the sentence about a fault has none. */
const withoutStop = (sentence: string) => sentence.replace(/\.$/, "");
/** Makes a sentence begin in lower case, for use after a colon. A name keeps its capital. */
const startSmall = (sentence: string) => sentence.replace(/^(A|No|The|This|Redeems)\b/, (word) => word.toLowerCase());
export const nameProcess = ({ role, pid, host }: Pick<ReportedProcess, "role" | "pid" | "host">) =>
  `${role} ${pid} on ${host}`;

const NO_HEARTBEAT = `No worker has sent a heartbeat for the queue ${redeemQueue.name}`;

const tellCause = (what: string) => `Nothing is redeemed: ${startSmall(what)}`;

/**
 * Finds out whether anything is redeemed: from the outcomes of redeems, and from each problem that would stop redeems.
 * The first problem found names the cause.
 * @param vouchersMax maximum number of vouchers whose redeems may all end without an answer in a minute by chance.
 * @param before the faults of the last look.
 */
export function findNothingRedeemed(
  facts: Facts,
  vouchersMax: number,
  before: readonly { what: string }[],
): Found[] | null {
  const stop = findProblem(facts) ?? findStop(facts) ?? findLostStandby(facts);
  const cause = stop ?? findNoAnswer(facts, vouchersMax) ?? findStuckJobs(facts);
  if (cause !== null) return [{ subject: EVERYONE, ...cause, what: tellCause(cause.what) }];
  // The fault of the last look may still exist, but cannot be seen now.
  const isHidden = facts.processes === null && before.some(({ what }) => what === tellCause(NO_HEARTBEAT));
  return isHidden || facts.queues === null || facts.redeems === null ? null : [];
}

type Cause = Omit<Found, "subject">;

/** Why no API process can redeem, in the words of its readiness. */
function findProblem(facts: Facts): Cause | null {
  const [problem] = problemsOf(facts);
  if (problem === undefined || canOthersServe(facts)) return null;
  return { what: problem.what, confirmMs: AGAIN_MS };
}

/** Why no shard of the redeem queue has a worker that takes its jobs. */
function findStop(facts: Facts): Cause | null {
  const { shards } = facts;
  const paused = pausedShards(facts, redeemQueue.name);
  const unserved = unservedShards(facts, redeemQueue);
  const refusing = facts.refusing.map(({ shard }) => shard.name);
  const isStopped = ({ name }: Shard) => [paused, unserved ?? [], refusing].some((names) => names.includes(name));
  if (shards.length === 0 || !shards.every(isStopped)) return null;
  if (paused.length > 0) return describePause(facts, redeemQueue.name);
  return { what: NO_HEARTBEAT, since: lastHeartbeat(facts, redeemQueue.name), confirmMs: REPLACED_MS };
}

function findNoAnswer({ redeems }: Facts, vouchersMax: number): Cause | null {
  if (redeems === null) return null;
  const silent = [redeems.recent, redeems.minute].find((one) => isSilent(one, vouchersMax));
  return silent === undefined ? null : { what: `${silent.unanswered} redeems had no answer, and none had one` };
}

/** Whether no redeem had an answer. Few vouchers do not show an outage, because they may be locked. */
const isSilent = ({ answered, vouchers }: Outcomes, vouchersMax: number) =>
  answered === 0 && vouchers.length > vouchersMax;

/** The fault that Postgres waits for a missing standby, and so commits nothing. */
function findLostStandby({ postgres }: Facts): Cause | null {
  if (postgres === null || countMissingStandbys(postgres) === 0) return null;
  return { what: STANDBY_AWAY, confirmMs: AGAIN_MS };
}
const STANDBY_AWAY = "A synchronous standby is away";

export function findStandbyAway({ postgres }: Facts): Found[] | null {
  if (postgres === null) return null;
  const missing = countMissingStandbys(postgres);
  if (missing === 0) return [];
  const what = missing === 1 ? STANDBY_AWAY : `${missing} synchronous standbys are away`;
  return [{ what, subject: "Postgres", confirmMs: AGAIN_MS }];
}

/** The fault that jobs wait in each shard that has jobs, although workers report. An idle worker takes jobs at once. */
function findStuckJobs(facts: Facts): Cause | null {
  const waiting = backlogsOf(facts, redeemQueue.name).filter((backlog) => backlog.waiting > 0);
  if (waiting.length === 0 || facts.redeems === null || facts.redeems.recent.answered > 0) return null;
  if (!waiting.every(({ oldestWaitingMs, active }) => oldestWaitingMs > STUCK_MS && active === 0)) return null;
  return { what: "Redeems wait, and no worker takes them", confirmMs: AGAIN_MS };
}
/** Longest wait of a job while a worker is idle, which normally is some milliseconds. Milliseconds. */
const STUCK_MS = 5_000;

/** The servers that cannot be used. If other API processes can use them, the fault concerns this process alone. */
export function findServersAway(facts: Facts): Found[] {
  const problems = problemsOf(facts);
  if (problems.length > 0 && !canOthersServe(facts)) return problems.map((one) => ({ ...one, confirmMs: AGAIN_MS }));
  const own = problems.length === 0 ? null : problems.map(({ what }) => what).join(". ");
  return [...facts.otherApis, { ...facts.self, problem: own }].flatMap((one) => {
    const what = `A process cannot serve requests: ${withoutStop(one.problem ?? "")}`;
    const unready = { what, subject: nameProcess(one), severity: "amber", confirmMs: AGAIN_MS } as const;
    return one.problem === null ? [] : [unready];
  });
}

/** Why this process cannot use its servers. It has just asked them. */
const problemsOf = ({ problems: { postgres, redis } }: Facts) =>
  Object.entries({ Postgres: postgres, Redis: redis }).flatMap(([subject, problem]) =>
    problem === null ? [] : [{ what: withoutStop(problem), subject }],
  );

/** Whether another API process can serve requests, as far as this process can know. */
const canOthersServe = ({ isAlone, otherApis }: Facts) => isAlone || otherApis.some(({ problem }) => problem === null);

/** The severity of a fault of a queue other than that of redeems: only without redeems do calls fail. */
export const OF_OTHER_QUEUES = "amber";
const severityOf = (queue: string) => (queue === redeemQueue.name ? {} : ({ severity: OF_OTHER_QUEUES } as const));

/** Pauses of queues. */
export function findPausedQueues(facts: Facts): Found[] | null {
  if (facts.queues === null) return null;
  const found = QUEUES.flatMap(({ name }): Found[] => {
    if (pausedShards(facts, name).length === 0) return [];
    return [{ ...describePause(facts, name), subject: name, ...severityOf(name) }];
  });
  return unlessHidden(facts, found);
}

/** A pause or resumption that was not made with this service has no known author. */
function describePause(facts: Facts, name: string): Cause {
  const what = `The queue ${name} is paused${nameShards(pausedShards(facts, name), backlogsOf(facts, name).length)}`;
  const pause = facts.pauses.find(({ queue, isPaused }) => queue === name && isPaused);
  return pause === undefined ? { what } : { what: `${what} by ${pause.by}`, since: pause.since };
}

/** Names the shards of a fault, if not all. The names are in its text, because its subject must stay the same. */
function nameShards(names: readonly string[], count: number): string {
  if (names.length === count) return "";
  const more = names.length > SHARDS_NAMED_MAX ? ` and ${names.length - SHARDS_NAMED_MAX} more` : "";
  return ` in ${names.length === 1 ? "shard" : "shards"} ${names.slice(0, SHARDS_NAMED_MAX).join(", ")}${more}`;
}
const SHARDS_NAMED_MAX = 8;

/** Finds queues and shards that no worker serves. Leaves out queues that need no worker. */
export function findUnservedQueues(facts: Facts): Found[] | null {
  const found = QUEUES.filter(({ isOptional }) => !isOptional).map((definition): Found[] | null => {
    const { name } = definition;
    const unserved = unservedShards(facts, definition);
    if (unserved === null) return null;
    if (unserved.length === 0) return [];
    const since = lastHeartbeat(facts, name);
    const touched = nameShards(unserved, shardsOf(facts, definition).length);
    const what = `No worker has sent a heartbeat for the queue ${name}${touched}`;
    return [{ what, subject: name, since, confirmMs: REPLACED_MS, ...severityOf(name) }];
  });
  return found.includes(null) ? null : found.flatMap((each) => each ?? []);
}

const shardsOf = ({ shards }: Facts, { shardBy }: { shardBy?: string }) =>
  shardBy === undefined ? shards.slice(0, 1) : shards;

/** The names of a queue's shards that no worker serves; null if heartbeats are not known. */
function unservedShards(facts: Facts, definition: AnyQueue): string[] | null {
  if (facts.processes === null) return null;
  const workers = facts.processes.filter((one) => isUp(one) && one.queues.includes(definition.name));
  const serves = ({ queueShards, workerShards }: ReportedProcess, { index, count }: Shard) =>
    (queueShards.length === 0 || queueShards.includes(count)) &&
    (workerShards === null || workerShards.includes(index));
  const unserved = shardsOf(facts, definition).filter((shard) => !workers.some((worker) => serves(worker, shard)));
  return unserved.map(({ name }) => name);
}

/** The last report of the queue's workers that have vanished or ended. */
function lastHeartbeat({ processes }: Facts, name: string): Date | null {
  const heard = (processes ?? []).filter((one) => !isUp(one) && one.queues.includes(name));
  return heard.length === 0 ? null : new Date(Math.max(...heard.map(({ at }) => Date.parse(at))));
}

const backlogsOf = ({ queues }: Facts, name: string): QueueBacklog[] =>
  (queues ?? []).flatMap(({ queues }) => queues ?? []).filter(({ queue }) => queue === name);

const pausedShards = (facts: Facts, name: string) =>
  backlogsOf(facts, name).flatMap(({ paused, shard }) => (paused ? [shard] : []));

/** Finds shards whose servers do not answer, or take no jobs, while the servers of others do. */
export function findShardsAway({ queues, refusing, problems, shards }: Facts): Found[] | null {
  if (problems.redis !== null || queues === null) return null;
  const silent = queues.flatMap(({ shard, queues }) => (queues === null ? [shard.name] : []));
  const words = new Map(silent.map((name) => [name, "does not answer"]));
  for (const { shard, refusal } of refusing)
    words.set(shard.name, refusal === null ? "does not answer" : withoutStop(refuses(refusal)));
  if (words.size === 0) return [];
  const whats = [...Map.groupBy(words.keys(), (name) => words.get(name))].map(
    ([word, names]) => `a Redis server ${word}${nameShards(names, shards.length)}`,
  );
  return [{ what: `A${whats.join("; ").slice(1)}`, subject: "Redis", confirmMs: AGAIN_MS }];
}

const FEW = 0.01;

/** @param max maximum number of redeems in a minute, and of their vouchers, that end without an answer by chance. */
export function findUnanswered({ redeems }: Facts, max: number): Found[] | null {
  if (redeems === null) return null;
  const { minute } = redeems;
  if (minute.unanswered <= max || isSilent(minute, max)) return [];
  const total = minute.unanswered + minute.answered;
  const what = `${minute.unanswered} of ${total} redeems had no answer in the last minute`;
  // Mild: few of many redeems, which callers repeat; or redeems of few vouchers, which may be locked.
  const isMild = minute.unanswered < total * FEW || minute.vouchers.length <= max;
  const milder = isMild ? ({ severity: "amber" } as const) : {};
  return [{ what, subject: EVERYONE, ...milder }];
}

/** @param secondsMax the longest wait of a redeem for a worker that is no fault. */
export function findBacklog(facts: Facts, secondsMax: number): Found[] | null {
  if (facts.queues === null) return null;
  const oldestMs = Math.max(0, ...backlogsOf(facts, redeemQueue.name).map(({ oldestWaitingMs }) => oldestWaitingMs));
  if (oldestMs <= secondsMax * 1_000) return unlessHidden(facts, []);
  return [{ what: "Redeems wait long for a worker", subject: redeemQueue.name, confirmMs: BACKLOG_MS }];
}
/** How long a backlog must last. The Prometheus alert has the same time. Milliseconds. */
const BACKLOG_MS = 60_000;

export function findVanishedProcesses({ processes }: Facts): Found[] | null {
  if (processes === null) return null;
  return processes
    .filter(({ state }) => state === "gone")
    .map((one) => ({ what: "A process has vanished", subject: nameProcess(one), since: new Date(one.at) }));
}

/** @param minutesMin for how many minutes a process must have stalled again and again. */
export function findStallingProcesses({ processes }: Facts, minutesMin: number): Found[] | null {
  if (processes === null) return null;
  return processes
    .filter((one) => isUp(one) && one.stallingMs >= minutesMin * 60_000)
    .map((one) => ({ what: "A process stalls again and again", subject: nameProcess(one) }));
}

export function findClockAhead({ clockAheadMs }: Facts): Found[] {
  if (clockAheadMs <= 0) return [];
  return [{ what: `The database's clock has jumped ${Math.round(clockAheadMs / 1_000)} s ahead`, subject: "Postgres" }];
}
