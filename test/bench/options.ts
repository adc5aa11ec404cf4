import { parseArgs } from "node:util";
import { LOAD_CASES } from "./cases.ts";
import { CONTENDERS, type ContenderId } from "./contenders.ts";

/** What `npm run bench` is asked for. */
export interface BenchOptions {
  cases: string[];
  /** Null: those that belong to each case. */
  contenders: ContenderId[] | null;
  /** Null: those of each case. */
  connections: number[] | null;
  rounds: number;
  seconds: number;
  /** Vouchers at the start of each case. */
  vouchers: number;
  /** Folder for CPU profiles; null: none are taken. */
  profile: string | null;
  json: boolean;
}

/** Says how to call it. */
export class UsageError extends Error {}

const CASES = LOAD_CASES.map((loadCase) => loadCase.id);

const USAGE = `usage: npm run bench -- [options]
  --cases LIST        of ${CASES.join(", ")}; all of them when left out
  --contenders LIST   of ${Object.keys(CONTENDERS).join(", ")}; those that belong to each case when left out
  --connections LIST  requests under way at once, such as 64,256; those of each case when left out
  --rounds N          turns of each contender (5)
  --seconds N         length of a turn (8)
  --vouchers N        vouchers at the start of each case (100000)
  --profile FOLDER    write a CPU profile of every process there; test/bench/show-profile.ts reads them
  --json              every round as JSON on standard output`;

/**
 * Reads the command line.
 * @throws UsageError when it cannot be understood.
 */
export function readOptions(args: string[]): BenchOptions {
  try {
    const { values } = parseArgs({
      args,
      options: {
        cases: { type: "string", default: CASES.join(",") },
        contenders: { type: "string" },
        connections: { type: "string" },
        rounds: { type: "string", default: "5" },
        seconds: { type: "string", default: "8" },
        vouchers: { type: "string", default: "100000" },
        profile: { type: "string" },
        json: { type: "boolean", default: false },
      },
    });
    return {
      cases: listOf(values.cases, CASES),
      contenders:
        values.contenders === undefined ? null : listOf(values.contenders, Object.keys(CONTENDERS) as ContenderId[]),
      connections: values.connections?.split(",").map((text) => positive("connections", text)) ?? null,
      rounds: positive("rounds", values.rounds),
      seconds: positive("seconds", values.seconds),
      vouchers: positive("vouchers", values.vouchers),
      profile: values.profile ?? null,
      json: values.json,
    };
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${USAGE}`);
  }
}

function listOf<Name extends string>(text: string, known: readonly Name[]): Name[] {
  return text.split(",").map((name) => {
    const found = known.find((candidate) => candidate === name);
    if (found === undefined) throw new Error(`there is no ${name}`);
    return found;
  });
}

function positive(name: string, text: string): number {
  const number = Number(text);
  if (!(Number.isInteger(number) && number > 0)) throw new Error(`--${name} must be a positive whole number`);
  return number;
}
