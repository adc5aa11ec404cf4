import type { DatabaseFence } from "../platform/db/database-fence.ts";
import { type Finding, isFresh, keepFinding, readFinding, reportPrefix } from "../platform/redis/findings.ts";
import {
  beginFaults,
  endFaults,
  type FaultKey,
  type KeptFaults,
  noteLook,
  type OpenFault,
  readKeptFaults,
} from "./db/faults.ts";
import { type Facts, gatherFacts, knownId, type OverviewDeps, probeSelf } from "./facts.ts";
import { compareFaults, FAULTS, type Fault, OF_ONE_PROCESS } from "./faults.ts";
import type { Found, Severity } from "./found.ts";
import { nameProcess } from "./judge-redeeming.ts";

/** Something that an operator should look at. */
export interface Attention {
  severity: Severity;
  what: string;
  since: string;
  /** Who or what is affected. */
  subject: string;
  /** The name of the entry in the runbook. */
  runbook: string;
  /** The operator page of the subject, as segments after `/ops`; null without one. */
  page: readonly string[] | null;
}

/** The result of one search for faults. */
interface Look {
  at: string;
  attention: Attention[];
  /** Faults that are not shown yet, because chance can explain their measurement. */
  suspected: Attention[];
  /** Whether the process that looked could not see other processes, and has judged only itself. */
  isAlone: boolean;
  sweeps: Sweeps;
}

/** The sweeper's passes, as looks have seen them. */
interface Sweeps {
  /** Changes with each pass of the sweeper. */
  mark: string;
  /** How long the mark has not changed: the sum of the times between looks, by Redis's clock. Milliseconds. */
  unchangedMs: number;
  /** Whether looks have seen the mark change. Otherwise the sweeper may have stopped long before the first look. */
  hasChanged: boolean;
}

/**
 * Maximum of one time between looks, so that a jump of Redis's clock alone does not make the sweeper look silent.
 * Milliseconds.
 */
const SILENT_STEP_MAX_MS = 30_000;
/** For how long Redis keeps a look. Milliseconds. */
const KEPT_MS = 7 * 86_400_000;

/** The last look that each process has made or read, in case Redis has none. */
const looks = new WeakMap<DatabaseFence, Look>();

/**
 * The faults of the whole deployment. Uses another process's look of at most `maxAgeMs` ago, or else looks itself. The
 * beginnings of faults are kept in Postgres, in Redis and in memory. Never rejects.
 */
export async function lookForFaults(ctx: OverviewDeps, maxAgeMs: number): Promise<Look> {
  const readiness = await probeSelf(ctx);
  const key = knownId(ctx.deployment) === null ? null : `${reportPrefix(ctx.deployment)}:look`;
  const last = key === null ? null : await readFinding<Look>(ctx.redis, key, KEPT_MS).catch(() => null);
  if (last !== null && isFresh(last, maxAgeMs)) {
    // Also kept here, so that this process does not continue from an older look of its own while Redis does not answer.
    looks.set(ctx.deployment, last.value);
    return last.value;
  }
  const gathered = await gatherFacts(ctx, readiness, maxAgeMs);
  const { problems, now } = gathered;
  const kept = problems.postgres === null ? await readKeptFaults(ctx.pool).catch(() => null) : null;
  const isAlone = problems.redis !== null && kept?.isLookedFor === true;
  const own = looks.get(ctx.deployment) ?? null;
  const newest = own === null || (last !== null && last.value.at > own.at) ? (last?.value ?? null) : own;
  const sweeps = followSweeps(gathered.sweepMark, last, own);
  // Without a look in Redis, only a pass since this process's own last look is known.
  const isSwept = sweeps.hasChanged && own !== null && own.sweeps.mark !== sweeps.mark;
  const unsweptMs = gathered.sweepMark === null || (last === null && !isSwept) ? null : sweeps.unchangedMs;
  const facts = { ...gathered, isAlone, unsweptMs, hasSwept: sweeps.hasChanged };
  const dated = dateFaults(judge(facts, recall(newest, kept, facts)), kept, now);
  const look = { at: now.toISOString(), ...dated, isAlone, sweeps };
  looks.set(ctx.deployment, look);
  if (isAlone) return look;
  if (kept !== null) await keepFaults(ctx, look.attention, kept, facts);
  if (key !== null) await keepFinding(ctx.redis, key, KEPT_MS, look);
  return look;
}

/**
 * If the sweeper made no pass since the last look, adds the time since then to the time without a pass.
 * @param last the look in Redis; null without one, and then `own` is this process's last look.
 */
function followSweeps(mark: string | null, last: Finding<Look> | null, own: Look | null): Sweeps {
  const before = (last?.value ?? own)?.sweeps ?? { mark: "", unchangedMs: 0, hasChanged: false };
  if (mark === null) return before;
  if (before.mark !== mark) return { mark, unchangedMs: 0, hasChanged: before.mark !== "" };
  const passedMs = last === null ? 0 : Math.min(Math.max(last.ageMs, 0), SILENT_STEP_MAX_MS);
  return { ...before, unchangedMs: before.unchangedMs + passedMs };
}

type Told = Pick<Look, "attention" | "suspected">;

/**
 * The faults known before this look: those of the last look, and those open in Postgres. So nothing is forgotten when
 * Redis and all processes restart. A process that is alone trusts Postgres more than its memory, except about itself.
 */
function recall(newest: Look | null, kept: KeptFaults | null, { isAlone, self }: Facts): Told {
  const { attention, suspected } = newest ?? { attention: [], suspected: [] };
  const remembered = isAlone ? attention.filter(({ subject }) => subject === nameProcess(self)) : attention;
  const names = new Set(remembered.map(nameOf));
  const open = (kept?.open ?? []).filter(({ name }) => isKnown(name)).map(toAttention);
  return { attention: [...remembered, ...open.filter((fault) => !names.has(nameOf(fault)))], suspected };
}

/** Whether this release knows the kind. A newer release may have recorded another one. */
const isKnown = (name: string) => FAULTS.some((kind) => kind.name === name);

function toAttention({ name, severity, what, subject, beganAt, page }: OpenFault): Attention {
  const known = { severity, what, subject, runbook: name, since: beganAt.toISOString() };
  return { ...known, page: page === "" ? null : page.split("/") };
}

/** A fault, and how long looks must have found it before it is shown. */
type Judged = Attention & { confirmMs: number };

/** The faults of each kind. If a kind cannot be judged, its faults stay. A process that is alone judges only itself. */
function judge(facts: Facts, before: Told): Judged[] {
  return FAULTS.flatMap((kind) => {
    const known = before.attention.filter(({ runbook }) => runbook === kind.name);
    const stays = known.map((fault) => ({ ...fault, confirmMs: 0 }));
    if (facts.isAlone && kind.name !== OF_ONE_PROCESS) return stays;
    const found = kind.find?.(facts, kind.limit ?? 0, known);
    if (found === undefined) return [];
    if (found === null) return stays;
    const judged = found.map((one) => toJudged(kind, one, before, facts.now));
    const names = new Set(judged.map(nameOf));
    return facts.isAlone ? [...judged, ...stays.filter((fault) => !names.has(nameOf(fault)))] : judged;
  });
}

function toJudged(kind: Fault, { what, subject, page, since, severity, confirmMs }: Found, before: Told, now: Date) {
  const fault = { severity: severity ?? kind.severity, what, subject, runbook: kind.name, page: page ?? null };
  const isThis = (one: Attention) => nameOf(one) === nameOf(fault);
  const known = [...before.attention, ...before.suspected].find(isThis);
  const isTold = before.attention.some(isThis);
  const began = since?.toISOString() ?? known?.since ?? now.toISOString();
  return { ...fault, since: began, confirmMs: isTold ? 0 : (confirmMs ?? 0) };
}

const pageOf = ({ page }: Pick<Attention, "page">) => (page ?? []).join("/");
/** Identifies a fault. */
export const nameOf = (fault: Pick<Attention, "runbook" | "subject" | "page">) =>
  JSON.stringify([fault.runbook, fault.subject, pageOf(fault)]);
const nameOfOpen = ({ name, subject, page }: FaultKey) => JSON.stringify([name, subject, page]);

/** Divides faults into shown and suspected ones, each with the beginning that Postgres has recorded. */
function dateFaults(judged: readonly Judged[], kept: KeptFaults | null, now: Date): Told {
  const begins = new Map(kept?.open.map((one) => [nameOfOpen(one), one.beganAt]));
  const dated = judged.map(({ confirmMs, ...fault }) => {
    const told = begins.get(nameOf(fault));
    // The database's clock may have been set back since the last look, even to before the deployment began.
    const found = new Date(Math.min(Date.parse(fault.since), now.getTime()));
    const isConfirmed = told !== undefined || now.getTime() - found.getTime() >= confirmMs;
    const since = isConfirmed ? clamp(told ?? found, kept?.deployedAt) : found;
    return { fault: { ...fault, since: since.toISOString() }, isConfirmed };
  });
  const attention = dated.flatMap(({ fault, isConfirmed }) => (isConfirmed ? [fault] : [])).toSorted(compareFaults);
  return { attention, suspected: dated.flatMap(({ fault, isConfirmed }) => (isConfirmed ? [] : [fault])) };
}

/** Records in Postgres which faults began, changed or ended, and that this process has looked. Never rejects. */
async function keepFaults(
  { pool, log }: OverviewDeps,
  attention: readonly Attention[],
  { open }: KeptFaults,
  { problems }: Facts,
): Promise<void> {
  const told = new Map(attention.map((fault) => [nameOf(fault), fault]));
  const isSame = (one: OpenFault) => {
    const fault = told.get(nameOfOpen(one));
    return fault?.what === one.what && fault.severity === one.severity;
  };
  const same = new Set(open.filter(isSame).map(nameOfOpen));
  const begun = attention.filter((fault) => !same.has(nameOf(fault))).map(toOpen);
  const ended = open.filter((one) => isKnown(one.name) && !told.has(nameOfOpen(one)));
  try {
    if (begun.length > 0) await beginFaults(pool, begun);
    if (ended.length > 0) await endFaults(pool, ended);
    if (problems.redis === null) await noteLook(pool);
  } catch (error) {
    log.debug({ err: error }, "cannot keep faults");
  }
}

function toOpen({ runbook, subject, severity, what, since, page }: Attention): OpenFault {
  return { beganAt: new Date(since), name: runbook, subject, page: (page ?? []).join("/"), severity, what };
}

/** Limits a time to the deployment's age, because no fault is older than the deployment. */
function clamp(since: Date, deployedAt: Date | undefined): Date {
  return new Date(Math.max(since.getTime(), deployedAt?.getTime() ?? 0));
}
