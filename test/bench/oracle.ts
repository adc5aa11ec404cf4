import { Agent, request } from "node:http";
import { makeVoucherCode } from "../../src/domain/codes.ts";
import { pooledRandomBytes } from "../../src/random.ts";
import { startContender } from "./contenders.ts";
import { formatTable } from "./format-table.ts";
import { issueVouchers } from "./issue-vouchers.ts";
import type { Stage } from "./stage.ts";
import { compareMedians, type MedianDifference, mannWhitney, median } from "./statistics.ts";
import { shuffle } from "./subjects.ts";
import { makePartner } from "./voucherctl.ts";

/** How long look-ups of codes take that the caller must not learn anything about. Microseconds. */
export interface Oracle {
  /** Look-ups of each kind. */
  count: number;
  foreignMedian: number;
  unknownMedian: number;
  /** Foreign less unknown. */
  seen: MedianDifference & { p: number };
  /** Unknown less other unknown: what nothing but noise looks like. */
  noise: MedianDifference & { p: number };
}

/** What the stage's environment must say: here it is timing that is measured, not whether a guesser is slowed down. */
export const ORACLE_ENVIRONMENT = { MISS_LIMIT_PER_MINUTE: "0" };

const WARM_UP = 500;

/**
 * Times look-ups of another organization's vouchers and of codes that nobody has, one at a time over one connection, in random order.
 * @throws Error when one is answered with anything but 404.
 */
export async function measureOracle(stage: Stage, count: number): Promise<Oracle> {
  const stranger = await makePartner(stage.ctl, "Stranger");
  const { codes: foreign } = await issueVouchers(stage, stranger, count);
  const running = await startContender("service", stage.surroundings);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const times: Record<"foreign" | "unknown" | "other", number[]> = { foreign: [], unknown: [], other: [] };
    const ask = (code: string) => timeLookUp(agent, running.ports[0] as number, stage.partner.key, code);
    for (let i = 0; i < WARM_UP; i++) await ask(makeVoucherCode(pooledRandomBytes));
    for (const code of foreign) {
      stage.signal.throwIfAborted();
      const turn = (["foreign", "unknown", "other"] as const).slice();
      shuffle(turn);
      for (const kind of turn) {
        times[kind].push(await ask(kind === "foreign" ? code : makeVoucherCode(pooledRandomBytes)));
      }
    }
    const compare = (one: number[], other: number[]) => ({ ...compareMedians(one, other), p: mannWhitney(one, other) });
    return {
      count,
      foreignMedian: median(times.foreign),
      unknownMedian: median(times.unknown),
      seen: compare(times.foreign, times.unknown),
      noise: compare(times.other, times.unknown),
    };
  } finally {
    agent.destroy();
    await running.end();
  }
}

/** From the request to the last byte of its answer. */
function timeLookUp(agent: Agent, port: number, key: string, code: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const path = `/partner/vouchers/${code}`;
    const call = request({ agent, host: "127.0.0.1", port, path, headers: { "X-Api-Key": key } }, (response) => {
      response.resume();
      response.once("end", () => {
        const micros = (performance.now() - startedAt) * 1_000;
        if (response.statusCode === 404) resolve(micros);
        else reject(new Error(`a look-up of a foreign or unknown code was answered with ${response.statusCode}`));
      });
    });
    call.once("error", reject);
    call.end();
  });
}

/** A table of it, and what it means. */
export function showOracle({ count, foreignMedian, unknownMedian, seen, noise }: Oracle): string {
  const row = ({ difference, low, high, p }: Oracle["seen"]) => [
    difference.toFixed(1),
    `${low.toFixed(1)} to ${high.toFixed(1)}`,
    p.toFixed(2),
  ];
  const table = formatTable(
    [`${count} look-ups of each`, "µs", "95 % interval", "p"],
    [
      ["median, foreign vouchers", foreignMedian.toFixed(1)],
      ["median, unknown codes", unknownMedian.toFixed(1)],
      ["difference, foreign less unknown", ...row(seen)],
      ["difference, unknown less other unknown", ...row(noise)],
    ],
  );
  const verdict =
    seen.low <= 0 && seen.high >= 0
      ? "No difference beyond noise."
      : "A difference is seen. One run in twenty shows one by chance: run it again.";
  return `\nForeign and unknown vouchers\n\n${table}\n\n${verdict}`;
}
