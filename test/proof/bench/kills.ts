import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findBrokenRows, REDEEMED_ONCE } from "../../support/invariants.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { untilStarted } from "../../support/until.ts";
import { askUntilAnswered } from "../faults/exchange.ts";
import { FaultPostgres } from "../faults/fault-postgres.ts";
import { FaultRedis } from "../faults/fault-redis.ts";
import { History, type PartnerAsk, refOf, type SuppliedVoucher, type Violation } from "../faults/history.ts";
import { checkOrder } from "../faults/order.ts";
import { readRecords } from "../faults/records.ts";
import { checkRedeems } from "../faults/rules.ts";
import { SeededRandom } from "../faults/seeded-random.ts";
import { ServiceProcess } from "../faults/service-process.ts";
import { CONTENDERS, type Contender, type ContenderId, environmentOf, LIBRARIES } from "./contenders.ts";
import { openStage, type Stage } from "./stage.ts";
import { formatTable, markBest } from "./table.ts";

const CALLERS = 8;
/**
 * Pauses: of a caller between two redeems, between two kills, and of a killed process before its restart. Milliseconds.
 */
const THINKING_MS = { min: 20, max: 100 };
const KILL_PAUSE_MS = { min: 500, max: 2_500 };
const DOWN_MS = { min: 0, max: 1_000 };
/** More vouchers than callers can use between two kills. */
const VOUCHERS_PER_KILL = 600;
/** How long a caller repeats a request. Milliseconds. */
const PATIENCE_MS = 60_000;
/** How long the service's API waits for a redeem. Milliseconds. */
const REDEEM_WAIT_MS = 10_000;
/** The relative frequencies of the kinds of redeems. */
const ORDERS = { redeem: 8, severalRefsOnOneVoucher: 1, sameRefOnTwoVouchers: 1 };
/** Contenders that may redeem long after they answered 503. Only the service gives each attempt a deadline. */
const WITHOUT_DEADLINE: readonly ContenderId[] = ["a", ...LIBRARIES];

/** A contender's losses. */
export interface KillsVerdict {
  contender: ContenderId;
  kills: Record<string, number>;
  redeems: number;
  confirmed: number;
  violations: Violation[];
  /** Answers that call a redemption new although an earlier answer called it new. A library repeats stored answers. */
  newTwice: number;
  /** Vouchers and references with more or less than one redemption and event. */
  redeemedTwice: number;
  /** Callers without an answer after a minute. */
  unanswered: number;
}

interface Victim {
  name: string;
  kill(): Promise<unknown>;
  start(): unknown;
}

type How = { kills: number; seed: number; root: string; signal: AbortSignal; say: (line: string) => void };

/**
 * Kills a contender's processes and servers at random, one at a time. Meanwhile callers repeat each request with the
 * same reference until an answer is below 500. Afterwards compares all answers with the database.
 */
export async function playKills(contender: ContenderId, how: How): Promise<KillsVerdict> {
  const directory = mkdtempSync(join(tmpdir(), "voucher-kills-"));
  // Under root, Postgres runs as another user, who must read this folder.
  chmodSync(directory, 0o755);
  const postgres = new FaultPostgres(join(directory, "postgres"), await findSteadyPort());
  const redis = new FaultRedis(join(directory, "redis"), await findSteadyPort());
  const processes: ServiceProcess[] = [];
  let stage: Stage | undefined;
  try {
    await Promise.all([postgres.start(), redis.start()]);
    const servers = { directory, postgresUrl: (database = "postgres") => postgres.urlOf(database) };
    stage = await openStage(servers, "kills", how.root, how);
    await stage.ensure("vouchers", how.kills * VOUCHERS_PER_KILL);
    const apis = await startProcesses(contender, { ...stage, redisUrl: redis.url }, processes);
    const victims: Victim[] = [
      ...processes,
      { name: "Redis", kill: () => redis.kill("Nothing"), start: () => redis.start() },
      { name: "Postgres", kill: () => postgres.kill(), start: () => postgres.start() },
    ];
    const history = new History();
    const random = new SeededRandom(how.seed);
    let isOver = false;
    const calling = Array.from({ length: CALLERS }, (_, n) => {
      const own = { random: random.fork(`caller ${n}`), apis, history, signal: how.signal };
      return callUntil(() => isOver, stage as Stage, `caller-${n}`, own);
    });
    const killing = killAtRandom(victims, how, random).finally(() => {
      isOver = true;
    });
    const [kills, ...unanswered] = await Promise.all([killing, ...calling]);
    const records = await readRecords(stage.db, postgres.clock);
    return {
      contender,
      kills,
      redeems: new Set(history.of("redeem").map(({ ask }) => ask.externalRef)).size,
      confirmed: records.redemptionsByRef.size,
      newTwice: forgetRepeatedNews(history),
      violations: [
        ...checkOrder(history, postgres.clock, records),
        ...checkRedeems(history, records, deadlineOf(contender)),
      ],
      redeemedTwice: (await findBrokenRows(stage.db, REDEEMED_ONCE)).flatMap(({ rows }) => rows).length,
      unanswered: unanswered.reduce((sum, of) => sum + of, 0),
    };
  } finally {
    await Promise.all(processes.map((process) => process.kill()));
    await stage?.close();
    await Promise.all([postgres.close(), redis.close()]);
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Maximum milliseconds from the moment when the contender reads an attempt to its redemption. */
const deadlineOf = (id: ContenderId) => (WITHOUT_DEADLINE.includes(id) ? Number.POSITIVE_INFINITY : REDEEM_WAIT_MS);

/** Adds the contender's processes to `processes`. Resolves with its APIs once they are ready. */
async function startProcesses(id: ContenderId, setup: Stage & { redisUrl: string }, processes: ServiceProcess[]) {
  const { apis, workers }: Contender = CONTENDERS[id];
  const logs = join(setup.directory, "logs");
  mkdirSync(logs);
  const start = async (name: string, script: string, own: Record<string, string>) => {
    const env = { ...environmentOf(setup), METRICS_PORT: String(await findSteadyPort()), ...own };
    // The process starts again after every exit, including an unexpected one. The verdict depends only on the answers.
    const process = new ServiceProcess({ name, script, env, logFile: join(logs, `${name}.log`) }, () => undefined);
    processes.push(process);
    process.start();
    return process;
  };
  for (const [n, script] of workers.entries()) await start(`worker ${n}`, script, {});
  const started = [];
  for (const [n, script] of apis.entries()) {
    const port = await findSteadyPort();
    const url = `http://127.0.0.1:${port}`;
    started.push({ process: await start(`api ${n}`, script, { PORT: String(port) }), url });
    await untilStarted(async () => (await fetch(`${url}/readyz`).catch(() => null))?.ok);
  }
  return started;
}

async function killAtRandom(victims: readonly Victim[], { kills, signal, say }: How, random: SeededRandom) {
  const counts: Record<string, number> = {};
  for (let done = 1; done <= kills; done++) {
    await sleep(random.between(KILL_PAUSE_MS.min, KILL_PAUSE_MS.max), undefined, { signal });
    const victim = random.pick(victims);
    await victim.kill();
    await sleep(random.between(DOWN_MS.min, DOWN_MS.max));
    await victim.start();
    counts[victim.name] = (counts[victim.name] ?? 0) + 1;
    say(`kill ${done} of ${kills}: ${victim.name}`);
  }
  return counts;
}

/** Redeems vouchers one after another. Returns the number of requests without an answer after a minute. */
async function callUntil(
  isOver: () => boolean,
  { vouchers, partner }: Stage,
  name: string,
  options: Parameters<typeof askUntilAnswered>[0],
): Promise<number> {
  const { random, signal } = options;
  const { keyId, key: secret, organizationId } = partner;
  const key = { id: keyId, secret, organizationId };
  const nextVoucher = (): SuppliedVoucher => {
    const { id, code } = vouchers.pop() ?? { id: "", code: "" };
    if (id === "") throw new Error("the vouchers are used up");
    return { id, code, organizationId };
  };
  let unanswered = 0;
  const redeem = async (voucher: SuppliedVoucher, externalRef: string): Promise<void> => {
    const ask: PartnerAsk = { operation: "redeem", key, voucher, externalRef, by: { code: voucher.code }, token: null };
    const patience = AbortSignal.timeout(PATIENCE_MS);
    await askUntilAnswered({ ...options, signal: AbortSignal.any([signal, patience]) }, ask).catch((error) => {
      if (!patience.aborted) throw error;
      unanswered += 1;
    });
  };
  for (let order = 1; !isOver(); order++) {
    const ref = `${name}-${order}`;
    const [voucher, kind] = [nextVoucher(), random.weigh(ORDERS)];
    if (kind === "redeem") await redeem(voucher, ref);
    else if (kind === "sameRefOnTwoVouchers") await Promise.all([redeem(voucher, ref), redeem(nextVoucher(), ref)]);
    else await Promise.all([redeem(voucher, ref), redeem(voucher, `${ref}-other`)]);
    await sleep(random.between(THINKING_MS.min, THINKING_MS.max));
  }
  return unanswered;
}

/** Counts answers that again call a redemption new. Deletes `alreadyConfirmed`, so that the rules judge the rest. */
function forgetRepeatedNews(history: History): number {
  const news = history.of("redeem").filter(({ status, body }) => status === 200 && body.alreadyConfirmed === false);
  const repeated = [...Map.groupBy(news, ({ ask }) => refOf(ask)).values()].filter(({ length }) => length > 1);
  for (const { body } of repeated.flat()) delete body.alreadyConfirmed;
  return repeated.reduce((sum, { length }) => sum + length - 1, 0);
}

/** Renders the verdicts as a Markdown table. Kills by victim and broken rules follow. */
export function showKills(verdicts: readonly KillsVerdict[]): string {
  const head = ["kill -9", "kills", "orders", "redeemed", "untrue answers", "new twice", "redeemed twice", "no answer"];
  const rows = verdicts.map(({ contender, kills, redeems, confirmed, violations, ...other }) => {
    const total = Object.values(kills).reduce((sum, of) => sum + of, 0);
    const { newTwice, redeemedTwice, unanswered } = other;
    return [
      CONTENDERS[contender].title,
      ...[total, redeems, confirmed, violations.length, newTwice, redeemedTwice, unanswered].map(String),
    ];
  });
  // The number of redeems has no best value, because other load on the machine changes it.
  const best = [null, null, null, null, "lowest", "lowest", "lowest", "lowest"] as const;
  const table = formatTable(
    head,
    markBest(rows, best, () => true),
  );
  const victims = verdicts.map(({ contender, kills }) => {
    const counts = Object.entries(kills).toSorted(([one], [other]) => one.localeCompare(other));
    return `- ${CONTENDERS[contender].title}: kills of ${counts.map(([name, of]) => `${name}: ${of}`).join(", ")}`;
  });
  const rules = verdicts.flatMap(({ contender, violations }) =>
    Object.entries(Object.groupBy(violations, ({ rule }) => rule)).map(
      ([rule, of = []]) => `- ${CONTENDERS[contender].title}: ${of.length} × "${rule}" does not hold. ${of[0]?.detail}`,
    ),
  );
  return [table, "", ...victims, ...rules].join("\n");
}
