import { redeemQueue } from "../core/redeem/job.ts";
import type { QueueBacklog } from "../platform/queues/measure-queues.ts";
import { refuses } from "../platform/redis/requirements.ts";
import type { Facts } from "./facts.ts";

/** Removes the full stop of a sentence, because the texts of faults have none. */
export const withoutStop = (sentence: string) => sentence.replace(/\.$/, "");
/** Makes a sentence begin in lower case, for use after a colon. Keeps the capital letter of a name. */
const startSmall = (sentence: string) =>
  withoutStop(sentence).replace(/^(A|No|The|This|Redeems|Workers)\b/, (word) => word.toLowerCase());

/** All causes for which some shards redeem nothing, in the order in which they are checked. */
const CAUSES: readonly ((facts: Facts, shards: readonly string[]) => string | null)[] = [
  ({ problems }) => problems.postgres,
  findMissingStandby,
  ({ problems }) => problems.redis,
  findRefusal,
  describePauseOfRedeems,
  findNoWorker,
  findStuckJobs,
];

/** Why these shards redeem nothing, as a sentence that follows a colon. */
export function findCause(facts: Facts, shards: readonly string[]): string {
  for (const find of CAUSES) {
    const cause = find(facts, shards);
    if (cause !== null) return startSmall(cause);
  }
  return "no worker answers";
}

/** Finds missing synchronous standbys. No transaction can commit while one is missing. */
function findMissingStandby({ database }: Facts): string | null {
  const missing = database === null ? 0 : countMissingStandbys(database.server);
  if (missing === 0) return null;
  return missing === 1 ? "A synchronous standby is away" : `${missing} synchronous standbys are away`;
}

/** A name in synchronous_standby_names, with or without double quotes. */
const NAME = /"((?:[^"]|"")*)"|[^\s,()"]+/g;

/**
 * The number of standbys for which Postgres waits although they are not connected. The setting gives a number of
 * standbys, or names one. A connected standby that the setting does not name is asynchronous, so it does not count.
 */
export function countMissingStandbys({
  standbyNames,
  standbys,
}: {
  standbyNames: string;
  standbys: readonly string[];
}) {
  const [, number, list = ""] = /^\s*(?:(?:FIRST\s+|ANY\s+)?(\d+)\s*\()?([\s\S]*)$/i.exec(standbyNames) ?? [];
  const named = Array.from(list.matchAll(NAME), ([name, quoted]) =>
    (quoted?.replaceAll('""', '"') ?? name).toLowerCase(),
  );
  if (named.length === 0) return 0;
  const synchronous = standbys.filter((name) => named.includes("*") || named.includes(name.toLowerCase()));
  return Math.max(0, Number(number ?? 1) - synchronous.length);
}

function findRefusal({ refusing }: Facts, shards: readonly string[]): string | null {
  const [own] = refusing.filter(({ shard }) => shards.includes(shard.name));
  if (own === undefined) return null;
  return own.refusal === null ? "A Redis server does not answer" : `A Redis server ${refuses(own.refusal)}`;
}

function describePauseOfRedeems(facts: Facts, shards: readonly string[]): string | null {
  const paused = backlogsOf(facts, redeemQueue.name).filter((one) => one.paused && shards.includes(one.shard));
  return paused.length === 0 ? null : describePause(facts, redeemQueue.name);
}

/** Describes the pause of a queue, but does not say who paused it: the queue's page does. */
export function describePause(facts: Facts, queue: string): string {
  const backlogs = backlogsOf(facts, queue);
  const paused = backlogs.flatMap((one) => (one.paused ? [one.shard] : []));
  return `The queue ${queue} is paused${nameShards(paused, backlogs.length)}`;
}

function findNoWorker({ processes }: Facts): string | null {
  if (processes === null || processes.some((one) => one.isUp && one.queues.includes(redeemQueue.name))) return null;
  return "No worker runs for the queue redeem";
}

function findStuckJobs(facts: Facts, shards: readonly string[]): string | null {
  const own = backlogsOf(facts, redeemQueue.name).filter(({ shard }) => shards.includes(shard));
  if (own.some(({ active }) => active > 0)) return "Workers do not finish the redeems that they have begun";
  return own.some(({ waiting }) => waiting > 0) ? "Redeems wait, and no worker takes them" : null;
}

export const backlogsOf = ({ queues }: Pick<Facts, "queues">, name: string): QueueBacklog[] =>
  (queues ?? []).flatMap(({ queues }) => queues ?? []).filter(({ queue }) => queue === name);

/** Names the affected shards in a fault's text, unless all are. The subject omits them, because it must not change. */
export function nameShards(names: readonly string[], count: number): string {
  if (names.length === count) return "";
  const more = names.length > SHARDS_NAMED_MAX ? ` and ${names.length - SHARDS_NAMED_MAX} more` : "";
  return ` in ${names.length === 1 ? "shard" : "shards"} ${names.slice(0, SHARDS_NAMED_MAX).join(", ")}${more}`;
}
const SHARDS_NAMED_MAX = 8;
