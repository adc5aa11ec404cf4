import type { Deployment } from "../platform/db/deployment.ts";
import { type Finding, isFresh, keepFinding, readFinding, reportPrefix } from "../platform/redis/findings.ts";
import { beginFaults, endFaults, type FaultKey, readOpenFaults } from "./db/faults.ts";
import { type Gathered, gatherFacts, knownId, type OverviewDeps, probeSelf } from "./facts.ts";
import { compareFaults, FAULTS, type Fault } from "./faults.ts";
import type { Found, Severity } from "./found.ts";

/** Something that an operator should look at. */
export interface Attention {
  severity: Severity;
  what: string;
  since: string;
  /** Whom or what it touches. */
  subject: string;
  /** The name of the runbook's entry. */
  runbook: string;
  /** The operator page of the subject, as segments after `/ops`; null without one. */
  page: readonly string[] | null;
}

/** Every fault at one time. */
export interface Look {
  at: string;
  attention: Attention[];
  /** Faults that are not told yet, because what found them can be chance. */
  suspected: Attention[];
  sweeps: Sweeps;
}

/** What a look knows of the sweeper's passes. */
interface Sweeps {
  /** Changes with each pass. */
  mark: string;
  /** For how long it has not changed: the sum of the times between looks, by Redis's clock. Milliseconds. */
  unchangedMs: number;
}

/** What one time between looks counts at most, so that no jump of Redis's clock alone makes the sweeper silent. Milliseconds. */
const SILENT_STEP_MAX_MS = 30_000;
/** For how long Redis keeps a look. Milliseconds. */
const KEPT_MS = 7 * 86_400_000;

/** The last look that each process has made or read, for a Redis that keeps none. */
const looks = new WeakMap<Deployment, Look>();

/**
 * The faults of the whole deployment, as a process found them at most `maxAgeMs` ago. Looks itself if none has. Since when a fault exists is kept
 * in Postgres, in Redis and in memory. Never rejects.
 */
export async function lookForFaults(ctx: OverviewDeps, maxAgeMs: number): Promise<Look> {
  const readiness = await probeSelf(ctx);
  const key = knownId(ctx.deployment) === null ? null : `${reportPrefix(ctx.deployment)}:look`;
  const last = key === null ? null : await readFinding<Look>(ctx.redis, key, KEPT_MS).catch(() => null);
  if (last !== null && isFresh(last, maxAgeMs)) {
    // Otherwise this process would go on from an older look of its own when Redis is away.
    looks.set(ctx.deployment, last.value);
    return last.value;
  }
  const facts = await gatherFacts(ctx, readiness, maxAgeMs);
  const own = looks.get(ctx.deployment) ?? null;
  const before = own === null || (last !== null && last.value.at > own.at) ? (last?.value ?? null) : own;
  const sweeps = followSweeps(facts.sweepMark, last);
  const found = judge(facts, sweeps, before);
  const dated = await keepTimes(ctx, found, facts);
  const look = { at: facts.now.toISOString(), ...dated, sweeps };
  looks.set(ctx.deployment, look);
  if (key !== null) await keepFinding(ctx.redis, key, KEPT_MS, look);
  return look;
}

/** Adds the time since the last look to the time without a pass, if there was none. */
function followSweeps(mark: string | null, last: Finding<Look> | null): Sweeps {
  const before = last?.value.sweeps;
  if (mark === null) return before ?? { mark: "", unchangedMs: 0 };
  if (last === null || before?.mark !== mark) return { mark, unchangedMs: 0 };
  const passedMs = Math.min(Math.max(last.ageMs, 0), SILENT_STEP_MAX_MS);
  return { mark, unchangedMs: before.unchangedMs + passedMs };
}

/** A fault with its kind, and for how long it must have been found. */
type Judged = Attention & { confirmMs: number };

/** What each kind finds. Where it is not known, what the last look found stays. */
function judge(facts: Gathered, sweeps: Sweeps, before: Look | null): Judged[] {
  const unsweptMs = facts.sweepMark === null ? null : sweeps.unchangedMs;
  return FAULTS.flatMap((kind) => {
    const known = (before?.attention ?? []).filter(({ runbook }) => runbook === kind.name);
    const found = kind.find?.({ ...facts, unsweptMs }, kind.limit ?? 0, known);
    if (found === undefined) return [];
    if (found === null) return known.map((fault) => ({ ...fault, confirmMs: 0 }));
    return found.map((one) => toJudged(kind, one, before, facts.now));
  });
}

function toJudged(
  kind: Fault,
  { what, subject, page, since, severity, confirmMs }: Found,
  before: Look | null,
  now: Date,
) {
  const fault = { severity: severity ?? kind.severity, what, subject, runbook: kind.name, page: page ?? null };
  const known = [...(before?.attention ?? []), ...(before?.suspected ?? [])].find(
    (one) => nameOf(one) === nameOf(fault),
  );
  const isTold = before?.attention.some((one) => nameOf(one) === nameOf(fault)) ?? false;
  const began = since?.toISOString() ?? known?.since ?? now.toISOString();
  return { ...fault, since: began, confirmMs: isTold ? 0 : (confirmMs ?? 0) };
}

const pageOf = ({ page }: Pick<Attention, "page">) => (page ?? []).join("/");
/** Tells faults apart. */
export const nameOf = (fault: Pick<Attention, "runbook" | "subject" | "page">) =>
  JSON.stringify([fault.runbook, fault.subject, pageOf(fault)]);
const keyOf = (fault: Attention): FaultKey => ({ name: fault.runbook, subject: fault.subject, page: pageOf(fault) });

/** Divides faults into those that are told and those that are suspected, and gives each the begin that Postgres knows, if it answers. */
async function keepTimes(
  ctx: OverviewDeps,
  judged: readonly Judged[],
  { now, problems }: Gathered,
): Promise<Pick<Look, "attention" | "suspected">> {
  const known = problems.postgres === null ? await readOpenFaults(ctx.pool).catch(() => null) : null;
  const begins = new Map(known?.open.map((one) => [JSON.stringify([one.name, one.subject, one.page]), one.beganAt]));
  const dated = judged.map(({ confirmMs, ...fault }) => {
    const told = begins.get(nameOf(fault));
    // The database's clock may have been set back since the last look, and to before the deployment.
    const found = new Date(Math.min(Date.parse(fault.since), now.getTime()));
    const isConfirmed = told !== undefined || now.getTime() - found.getTime() >= confirmMs;
    const since = isConfirmed ? clamp(told ?? found, known?.deployedAt) : found;
    return { fault: { ...fault, since: since.toISOString() }, isConfirmed };
  });
  const attention = dated.flatMap(({ fault, isConfirmed }) => (isConfirmed ? [fault] : [])).toSorted(compareFaults);
  const suspected = dated.flatMap(({ fault, isConfirmed }) => (isConfirmed ? [] : [fault]));
  if (known !== null) {
    const names = new Set(attention.map(nameOf));
    const begun = attention.filter((fault) => !begins.has(nameOf(fault)));
    const ended = known.open.filter((one) => !names.has(JSON.stringify([one.name, one.subject, one.page])));
    await keepInPostgres(ctx, begun, ended).catch((error) => ctx.log.debug({ err: error }, "cannot keep faults"));
  }
  return { attention, suspected };
}

async function keepInPostgres({ pool }: OverviewDeps, begun: readonly Attention[], ended: readonly FaultKey[]) {
  const rows = begun.map((fault) => {
    const { severity, what, since } = fault;
    return { ...keyOf(fault), severity, what, beganAt: new Date(since) };
  });
  if (rows.length > 0) await beginFaults(pool, rows);
  if (ended.length > 0) await endFaults(pool, ended);
}

/** No fault is older than the deployment. */
function clamp(since: Date, deployedAt: Date | undefined): Date {
  return new Date(Math.max(since.getTime(), deployedAt?.getTime() ?? 0));
}
