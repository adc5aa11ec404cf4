import { LOAD_CASES } from "./cases.ts";
import { type RunningContender, startContender } from "./contenders.ts";
import { formatTable } from "./format-table.ts";
import { type LoadOutcome, runLoad } from "./load/run-load.ts";
import type { PlayOptions } from "./play-rounds.ts";
import type { Stage } from "./stage.ts";
import { median } from "./statistics.ts";

/** One round: what those who want other vouchers see, alone and beside each of two crowds. */
interface HotRound {
  aloneP99Ms: number;
  besideHotP99Ms: number;
  besideOrdinaryP99Ms: number;
  /** Refusals a second of the one voucher. */
  refusedRate: number;
}

/** What a crowd on one voucher costs everyone else. Medians over the rounds. */
export interface HotVoucher extends HotRound {
  /** Connections of the others, and of the crowd. */
  connections: number;
  /** Time for 10 000 refusals at that rate. Seconds. */
  tenThousandSeconds: number;
}

/** Half of the usual load each, so that both together are the usual load. */
const CONNECTIONS = 32;

/**
 * Has everyone redeem one voucher while others redeem vouchers of their own. The voucher is unused when each round begins: its first
 * redeem burns it, all others are refused. For comparison the others play alone, and beside a crowd of the same size that
 * redeems vouchers of its own.
 */
export async function measureHotVoucher(stage: Stage, options: PlayOptions): Promise<HotVoucher> {
  const running = await startContender("service", stage.surroundings);
  try {
    const rounds: HotRound[] = [];
    await redeemOwn(stage, running, "warm", options);
    for (let round = 1; round <= options.rounds; round++) {
      const alone = await redeemOwn(stage, running, `alone${round}`, options);
      const [besideHot, hot] = await Promise.all([
        redeemOwn(stage, running, `beside${round}`, options),
        redeemOne(stage, running, `hot${round}`, options),
      ]);
      const [besideOrdinary] = await Promise.all([
        redeemOwn(stage, running, `half${round}`, options),
        redeemOwn(stage, running, `other${round}`, options),
      ]);
      if (hot.refused !== hot.requests - 1) {
        throw new Error(`of ${hot.requests} redeems of one voucher ${hot.requests - hot.refused} were not refused`);
      }
      rounds.push({
        aloneP99Ms: alone.p99Micros / 1_000,
        besideHotP99Ms: besideHot.p99Micros / 1_000,
        besideOrdinaryP99Ms: besideOrdinary.p99Micros / 1_000,
        refusedRate: (hot.refused * 1_000_000) / hot.micros,
      });
      stage.say(`hot voucher, round ${round}: ${Math.round(rounds.at(-1)?.refusedRate ?? 0)} refusals/s`);
    }
    running.check();
    const of = (what: keyof HotRound) => median(rounds.map((round) => round[what]));
    return {
      connections: CONNECTIONS,
      aloneP99Ms: of("aloneP99Ms"),
      besideHotP99Ms: of("besideHotP99Ms"),
      besideOrdinaryP99Ms: of("besideOrdinaryP99Ms"),
      refusedRate: of("refusedRate"),
      tenThousandSeconds: 10_000 / of("refusedRate"),
    };
  } finally {
    await running.end();
  }
}

/** Everyone redeems a voucher of their own. */
async function redeemOwn(
  stage: Stage,
  running: RunningContender,
  name: string,
  { seconds, supply }: PlayOptions,
): Promise<LoadOutcome> {
  const wanted = LOAD_CASES.redeem.rateGuess * seconds;
  if (stage.vouchers.left < wanted) await stage.addVouchers(Math.max(supply, wanted));
  const codes = stage.vouchers.take(wanted);
  const lines = codes.map((code, index) => LOAD_CASES.redeem.line(code, `${name}-${index}`, stage.partner));
  const outcome = await load(stage, running, name, seconds, "once", lines);
  stage.vouchers.add(outcome.unused.map((index) => codes[index] as string));
  if (outcome.refused + outcome.broken > 0 || outcome.exhausted) {
    throw new Error(`${name}: ${outcome.refused} refusals, ${outcome.broken} failed`);
  }
  return outcome;
}

/** Everyone redeems the same voucher, each under a reference of its own. */
async function redeemOne(
  stage: Stage,
  running: RunningContender,
  name: string,
  { seconds }: PlayOptions,
): Promise<LoadOutcome> {
  const [code = ""] = stage.vouchers.take(1);
  // Far more than can be sent, so that no reference comes twice.
  const count = 20_000 * seconds;
  const lines = Array.from({ length: count }, (_, index) =>
    LOAD_CASES.redeem.line(code, `${name}-${index}`, stage.partner),
  );
  return load(stage, running, name, seconds, "once", lines);
}

function load(
  stage: Stage,
  running: RunningContender,
  name: string,
  seconds: number,
  mode: "once",
  lines: string[],
): Promise<LoadOutcome> {
  return runLoad(stage.client, {
    ports: running.ports,
    connections: CONNECTIONS,
    seconds,
    mode,
    lines,
    header: `X-Api-Key: ${stage.partner.key}`,
    directory: stage.directory,
    name,
    signal: stage.signal,
  });
}

/** A table of it. */
export function showHotVoucher(hot: HotVoucher): string {
  const times = (p99Ms: number) => `${p99Ms.toFixed(1)} ms, × ${(p99Ms / hot.aloneP99Ms).toFixed(2)}`;
  const head = ["hot voucher", `${hot.connections} connections on it, ${hot.connections} on others`];
  return `\n${formatTable(head, [
    ["refused redeems of one voucher", `${Math.round(hot.refusedRate)}/s`],
    ["10 000 of them take", `${hot.tenThousandSeconds.toFixed(1)} s`],
    ["p99 of others, alone", `${hot.aloneP99Ms.toFixed(1)} ms`],
    ["p99 of others, beside the crowd on one voucher", times(hot.besideHotP99Ms)],
    ["p99 of others, beside a crowd of ordinary redeems", times(hot.besideOrdinaryP99Ms)],
  ])}`;
}
