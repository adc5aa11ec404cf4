import { parseArgs } from "node:util";
import { LOAD_CASES, type LoadCaseId } from "./cases.ts";
import { CONTENDERS, type ContenderId } from "./contenders.ts";

/** What can be asked for by name. */
export type CaseId = LoadCaseId | "hot" | "oracle";

/** What `npm run bench` is asked for. */
export interface BenchOptions {
  cases: CaseId[];
  /** Null: those that belong to each case. */
  contenders: ContenderId[] | null;
  /** Null: those of each case. */
  connections: number[] | null;
  rounds: number;
  seconds: number;
  /** Vouchers at the start of each case, and made at once when there are too few. */
  supply: number;
  /** Vouchers to measure growth with; null: growth is not measured. */
  scale: number | null;
  /** How long to watch memory; null: it is not watched. */
  minutes: number | null;
  /** Folder for CPU profiles; null: none are taken. */
  profile: string | null;
  client: "wrk" | "autocannon";
  json: boolean;
}

/** What is asked for cannot be done; `message` says why. */
export class UsageError extends Error {}

const CASES: readonly CaseId[] = [...(Object.keys(LOAD_CASES) as LoadCaseId[]), "hot", "oracle"];

const USAGE = `usage: npm run bench -- [options]
  --cases LIST        of ${CASES.join(", ")}; all of them when left out
  --contenders LIST   of ${Object.keys(CONTENDERS).join(", ")}; those that belong to each case when left out
  --connections LIST  requests under way at once, such as 64,256; those of each case when left out
  --rounds N          turns of each contender (5)
  --seconds N         length of a turn (8)
  --supply N          vouchers at the start of each case (100000)
  --scale N           instead of the cases: issue, verify, look up and redeem with this many vouchers, such as 10m
  --minutes N         instead of the cases: watch memory under load for so long
  --profile FOLDER    write a CPU profile of every process there; test/bench/show-profile.ts reads them
  --client NAME       wrk or autocannon; wrk when it is there or can be installed
  --json              everything as JSON on standard output`;

/**
 * Reads the command line.
 * @throws UsageError when it cannot be understood.
 */
export function readOptions(args: string[]): BenchOptions {
  try {
    const { values } = parseArgs({
      args,
      options: {
        cases: { type: "string" },
        contenders: { type: "string" },
        connections: { type: "string" },
        rounds: { type: "string", default: "5" },
        seconds: { type: "string", default: "8" },
        supply: { type: "string", default: "100000" },
        scale: { type: "string" },
        minutes: { type: "string" },
        profile: { type: "string" },
        client: { type: "string", default: "wrk" },
        json: { type: "boolean", default: false },
      },
    });
    const scale = values.scale === undefined ? null : readCount("scale", values.scale);
    const minutes = values.minutes === undefined ? null : readCount("minutes", values.minutes);
    const others = scale === null && minutes === null ? CASES : [];
    return {
      cases: values.cases === undefined ? [...others] : readList(values.cases, CASES),
      contenders:
        values.contenders === undefined ? null : readList(values.contenders, Object.keys(CONTENDERS) as ContenderId[]),
      connections: values.connections?.split(",").map((text) => readCount("connections", text)) ?? null,
      rounds: readCount("rounds", values.rounds),
      seconds: readCount("seconds", values.seconds),
      supply: readCount("supply", values.supply),
      scale,
      minutes,
      profile: values.profile ?? null,
      client: readList(values.client, ["wrk", "autocannon"] as const)[0] ?? "wrk",
      json: values.json,
    };
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${USAGE}`);
  }
}

function readList<Name extends string>(text: string, known: readonly Name[]): Name[] {
  return text.split(",").map((name) => {
    const found = known.find((candidate) => candidate === name);
    if (found === undefined) throw new Error(`there is no ${name}`);
    return found;
  });
}

/** A whole number, with k or m for thousands and millions. */
function readCount(name: string, text: string): number {
  const [, digits, unit = ""] = /^(\d{1,9})([km]?)$/i.exec(text) ?? [];
  const count = Number(digits) * { "": 1, k: 1_000, m: 1_000_000 }[unit.toLowerCase() as "" | "k" | "m"];
  if (!(count > 0)) throw new Error(`--${name} must be a positive whole number`);
  return count;
}
