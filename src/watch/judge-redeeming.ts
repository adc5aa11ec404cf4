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

/** A probe can be slow by chance: what it finds must be found again after this time. Milliseconds. */
const AGAIN_MS = 3_000;
/** Workers that are replaced leave some seconds without any: from the last heartbeat. Milliseconds. */
const REPLACED_MS = 10_000;
const EVERYONE = "All organizations";

const isUp = ({ state }: ReportedProcess) => state === "up";
/** The sentence about a fault has no full stop. */
const withoutStop = (sentence: string) => sentence.replace(/\.$/, "");
/** A sentence after a colon, in lower case; a name keeps its capital. */
const startSmall = (sentence: string) => sentence.replace(/^(A|No|The|This|Redeems)\b/, (word) => word.toLowerCase());
export const nameProcess = ({ role, pid, host }: Pick<ReportedProcess, "role" | "pid" | "host">) =>
  `${role} ${pid} on ${host}`;

const NO_HEARTBEAT = `No worker has sent a heartbeat for the queue ${redeemQueue.name}`;

const tellCause = (what: string) => `Nothing is redeemed: ${startSmall(what)}`;

/**
 * Whether anything is redeemed: by its outcome, and by each thing that would stop it. The first that is found names the
 * cause.
 * @param vouchersMax vouchers whose redeems of a minute may end without an answer by chance.
 * @param before what the last look found.
 */
export function findNothingRedeemed(
  facts: Facts,
  vouchersMax: number,
  before: readonly { what: string }[],
): Found[] | null {
  const stop = findProblem(facts) ?? findStop(facts) ?? findLostStandby(facts);
  const cause = stop ?? findNoAnswer(facts, vouchersMax) ?? findStuckJobs(facts);
  if (cause !== null) return [{ subject: EVERYONE, ...cause, what: tellCause(cause.what) }];
  // What the last look found may go on unseen.
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

/** Whether none had an answer. Redeems of few vouchers tell nothing about others: they may be locked. */
const isSilent = ({ answered, vouchers }: Outcomes, vouchersMax: number) =>
  answered === 0 && vouchers.length > vouchersMax;

/** Postgres commits nothing while it waits for a standby. */
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

/** Whether jobs wait in each shard that has any, although no worker is known to be missing. */
function findStuckJobs(facts: Facts): Cause | null {
  const waiting = backlogsOf(facts, redeemQueue.name).filter((backlog) => backlog.waiting > 0);
  if (waiting.length === 0 || facts.redeems === null || facts.redeems.recent.answered > 0) return null;
  if (!waiting.every(({ oldestWaitingMs, active }) => oldestWaitingMs > STUCK_MS && active === 0)) return null;
  return { what: "Redeems wait, and no worker takes them", confirmMs: AGAIN_MS };
}
/** An idle worker takes a job within milliseconds. Milliseconds. */
const STUCK_MS = 5_000;

/** Why servers cannot be used. While other API processes can use them, it is this process alone. */
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

/** Why this process cannot use its servers, which it has asked. */
const problemsOf = ({ problems: { postgres, redis } }: Facts) =>
  Object.entries({ Postgres: postgres, Redis: redis }).flatMap(([subject, problem]) =>
    problem === null ? [] : [{ what: withoutStop(problem), subject }],
  );

/** Whether another API process can serve requests, as far as this one can know. */
const canOthersServe = ({ isAlone, otherApis }: Facts) => isAlone || otherApis.some(({ problem }) => problem === null);

/** Pauses of queues. Only that of redeems refuses anybody. */
export function findPausedQueues(facts: Facts): Found[] | null {
  if (facts.queues === null) return null;
  const found = QUEUES.flatMap(({ name }): Found[] => {
    if (pausedShards(facts, name).length === 0) return [];
    const milder = name === redeemQueue.name ? {} : ({ severity: "amber" } as const);
    return [{ ...describePause(facts, name), subject: name, ...milder }];
  });
  return unlessHidden(facts, found);
}

/** A pause that was made elsewhere, or resumed elsewhere since, has no name. */
function describePause(facts: Facts, name: string): Cause {
  const what = `The queue ${name} is paused${nameShards(pausedShards(facts, name), backlogsOf(facts, name).length)}`;
  const pause = facts.pauses.find(({ queue, isPaused }) => queue === name && isPaused);
  return pause === undefined ? { what } : { what: `${what} by ${pause.by}`, since: pause.since };
}

/** The shards that a fault touches, unless it touches all. They belong in its text: its subject must stay the same. */
function nameShards(names: readonly string[], count: number): string {
  if (names.length === count) return "";
  const more = names.length > SHARDS_NAMED_MAX ? ` and ${names.length - SHARDS_NAMED_MAX} more` : "";
  return ` in ${names.length === 1 ? "shard" : "shards"} ${names.slice(0, SHARDS_NAMED_MAX).join(", ")}${more}`;
}
const SHARDS_NAMED_MAX = 8;

/** Queues and shards that no worker serves, except queues that may have no worker. */
export function findUnservedQueues(facts: Facts): Found[] | null {
  const found = QUEUES.filter(({ isOptional }) => !isOptional).map((definition): Found[] | null => {
    const { name } = definition;
    const unserved = unservedShards(facts, definition);
    if (unserved === null) return null;
    if (unserved.length === 0) return [];
    const milder = name === redeemQueue.name ? {} : ({ severity: "amber" } as const);
    const since = lastHeartbeat(facts, name);
    const touched = nameShards(unserved, shardsOf(facts, definition).length);
    const what = `No worker has sent a heartbeat for the queue ${name}${touched}`;
    return [{ what, subject: name, since, confirmMs: REPLACED_MS, ...milder }];
  });
  return found.includes(null) ? null : found.flatMap((each) => each ?? []);
}

const shardsOf = ({ shards }: Facts, { shardBy }: { shardBy?: string }) =>
  shardBy === undefined ? shards.slice(0, 1) : shards;

/** The names of the shards of a queue that no worker serves; null if heartbeats are not known. */
function unservedShards(facts: Facts, definition: AnyQueue): string[] | null {
  if (facts.processes === null) return null;
  const workers = facts.processes.filter((one) => isUp(one) && one.queues.includes(definition.name));
  const serves = ({ queueShards, workerShards }: ReportedProcess, { index, count }: Shard) =>
    (queueShards.length === 0 || queueShards.includes(count)) &&
    (workerShards === null || workerShards.includes(index));
  const unserved = shardsOf(facts, definition).filter((shard) => !workers.some((worker) => serves(worker, shard)));
  return unserved.map(({ name }) => name);
}

/** When the last worker of a queue was heard, of those that are gone or have ended. */
function lastHeartbeat({ processes }: Facts, name: string): Date | null {
  const heard = (processes ?? []).filter((one) => !isUp(one) && one.queues.includes(name));
  return heard.length === 0 ? null : new Date(Math.max(...heard.map(({ at }) => Date.parse(at))));
}

const backlogsOf = ({ queues }: Facts, name: string): QueueBacklog[] =>
  (queues ?? []).flatMap(({ queues }) => queues ?? []).filter(({ queue }) => queue === name);

const pausedShards = (facts: Facts, name: string) =>
  backlogsOf(facts, name).flatMap(({ paused, shard }) => (paused ? [shard] : []));

/** Shards whose servers do not answer, or take no jobs, while others do. */
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

/** @param max redeems of a minute, and vouchers of these, that may be without an answer by chance. */
export function findUnanswered({ redeems }: Facts, max: number): Found[] | null {
  if (redeems === null) return null;
  const { minute } = redeems;
  if (minute.unanswered <= max || isSilent(minute, max)) return [];
  const total = minute.unanswered + minute.answered;
  const what = `${minute.unanswered} of ${total} redeems had no answer in the last minute`;
  // A few of many: a caller that repeats them gets its answer. Of few vouchers: these may be locked.
  const isMild = minute.unanswered < total * FEW || minute.vouchers.length <= max;
  const milder = isMild ? ({ severity: "amber" } as const) : {};
  return [{ what, subject: EVERYONE, ...milder }];
}

/** @param secondsMax the longest wait of a redeem for a worker. */
export function findBacklog(facts: Facts, secondsMax: number): Found[] | null {
  if (facts.queues === null) return null;
  const oldestMs = Math.max(0, ...backlogsOf(facts, redeemQueue.name).map(({ oldestWaitingMs }) => oldestWaitingMs));
  if (oldestMs <= secondsMax * 1_000) return unlessHidden(facts, []);
  return [{ what: "Redeems wait long for a worker", subject: redeemQueue.name, confirmMs: BACKLOG_MS }];
}
/** The limit that the alert has, too. Milliseconds. */
const BACKLOG_MS = 60_000;

export function findVanishedProcesses({ processes }: Facts): Found[] | null {
  if (processes === null) return null;
  return processes
    .filter(({ state }) => state === "gone")
    .map((one) => ({ what: "A process has vanished", subject: nameProcess(one), since: new Date(one.at) }));
}

/** @param minutesMin for how long a process stalls again and again. */
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
