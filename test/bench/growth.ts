import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { LOAD_CASES } from "./cases.ts";
import { formatTable } from "./format-table.ts";
import { issueVouchers } from "./issue-vouchers.ts";
import { type PlayOptions, playRounds, type Series } from "./play-rounds.ts";
import { medianOf, showSeries } from "./show-series.ts";
import { openStage, type Stage, type StageOptions } from "./stage.ts";
import { runVoucherctl } from "./voucherctl.ts";

/** The service with few vouchers and with many. */
export interface Growth {
  few: number;
  many: number;
  /** Vouchers a second that `batch issue` made of the many, its start included. */
  issueRate: number;
  /** Events a second that `chain verify --all` verified of the many, its start included. */
  verifyRate: number;
  /** Look-ups, then redeems; each with few, then with many. */
  series: Series[];
  lookUpRatio: number;
  redeemRatio: number;
}

/** The number of vouchers that growth is measured from. */
const FEW = 100_000;
/** Codes that requests are drawn from, evenly from all vouchers there are. */
const CODES_MAX = 400_000;
/**
 * Disk that a voucher needs: 1 670 bytes with its first event and all indexes, what of it is in the write-ahead log before a checkpoint, its
 * line in the file of codes, and a third for burns and room.
 */
const BYTES_PER_VOUCHER = 2_400;
const CONNECTIONS = 64;
/** Vouchers of a batch at most, by `voucherctl batch issue`. */
const BATCH_MAX = 10_000_000;

/** Tells why there is no room for so many vouchers; null when there is. */
export function findLackOfRoom(vouchers: number): string | null {
  if (vouchers > BATCH_MAX) return `a batch has at most ${BATCH_MAX.toLocaleString("en")} vouchers`;
  const { bavail, bsize } = statfsSync(tmpdir());
  const needed = vouchers * BYTES_PER_VOUCHER;
  if (bavail * bsize >= needed) return null;
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(0)} GB`;
  return `${vouchers} vouchers need about ${gigabytes(needed)} in ${tmpdir()}; ${gigabytes(bavail * bsize)} are free`;
}

/** Measures issue and verification of many vouchers, and look-ups and redeems with them against the same with few, in turns. */
export async function measureGrowth(options: StageOptions, many: number, play: PlayOptions): Promise<Growth> {
  const small = await openStage(options);
  try {
    await small.addVouchers(FEW);
    const large = await openStage(options);
    try {
      const { codes, seconds } = await issueVouchers(large, large.partner, many, { keep: CODES_MAX });
      large.vouchers.add(codes);
      await readIntoMemory(large);
      options.say(`${many} vouchers issued in ${Math.round(seconds)} s`);
      const compare = (id: "lookup" | "redeem") =>
        playRounds(
          LOAD_CASES[id],
          [
            { contender: "service", stage: small, title: `with ${FEW.toLocaleString("en")} vouchers` },
            { contender: "service", stage: large, title: `with ${many.toLocaleString("en")} vouchers` },
          ],
          CONNECTIONS,
          play,
        );
      const lookUps = await compare("lookup");
      const redeems = await compare("redeem");
      const verified = await verify(large);
      options.say(`${verified.events} events verified in ${Math.round(verified.seconds)} s`);
      return {
        few: FEW,
        many,
        issueRate: many / seconds,
        verifyRate: verified.events / verified.seconds,
        series: [...lookUps, ...redeems],
        lookUpRatio: ratio(lookUps),
        redeemRatio: ratio(redeems),
      };
    } finally {
      await large.close();
    }
  } finally {
    await small.close();
  }
}

/**
 * Has Postgres read into memory what look-ups and burns go through: making many vouchers pushed it out, and a database that has served
 * for a while has it there. What is measured is how the work grows, not how long a disk takes to be read once.
 */
async function readIntoMemory({ db }: Stage): Promise<void> {
  await db.query("CREATE EXTENSION pg_prewarm");
  await db.query(
    `SELECT pg_prewarm(c.oid) FROM pg_class AS c
      WHERE c.relname IN ('vouchers', 'vouchers_pkey', 'vouchers_code_key', 'voucher_events_pkey', 'voucher_events_no_fork')`,
  );
}

/** @throws Error when a chain is broken. */
async function verify(stage: Stage): Promise<{ events: number; seconds: number }> {
  const { answer, seconds } = await runVoucherctl<{ events: number; broken: unknown[] }>(
    stage.ctl,
    ...["chain", "verify", "--all"],
  );
  if (answer.broken.length > 0) throw new Error(`${answer.broken.length} chains are broken`);
  return { events: answer.events, seconds };
}

/** Many against few. */
function ratio([few, many]: Series[]): number {
  if (few === undefined || many === undefined) return Number.NaN;
  return medianOf(many, ({ rate }) => rate) / medianOf(few, ({ rate }) => rate);
}

/** Tables of it. */
export function showGrowth(growth: Growth): string {
  const rate = (perSecond: number) => `${Math.round(perSecond).toLocaleString("en")}/s`;
  const table = formatTable(
    ["growth", `${growth.many.toLocaleString("en")} vouchers`],
    [
      ["vouchers issued", rate(growth.issueRate)],
      ["events verified", rate(growth.verifyRate)],
      ["look-ups, many vouchers against few", `× ${growth.lookUpRatio.toFixed(2)}`],
      ["redeems, many vouchers against few", `× ${growth.redeemRatio.toFixed(2)}`],
    ],
  );
  const tables = (["lookup", "redeem"] as const).map((id) => {
    const { title, unit } = LOAD_CASES[id];
    const own = growth.series.filter(({ caseId }) => caseId === id);
    return showSeries(title, unit, CONNECTIONS, own);
  });
  return `${tables.join("\n")}\n\n${table}`;
}
