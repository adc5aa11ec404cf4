import { CASES } from "./cases.ts";
import { type CrowdAnswer, sendAtOnce } from "./crowd.ts";
import { runLoad, type Unit } from "./load.ts";
import { FIRST_RATE, type Player } from "./play-case.ts";
import type { Stage, Subject } from "./stage.ts";
import { median, quantile } from "./table.ts";

/** A crowd that claims a product at the same moment, when there is less supply than users. */
export interface Drop {
  title: string;
  users: number;
  supply: number;
  /** Partners' concurrent redeems before and during the drop. */
  redeems: number;
}

export const DROPS = {
  "drop-3000": {
    title: "3 000 users at once claim 300 vouchers, beside 16 redeems",
    users: 3_000,
    supply: 300,
    redeems: 16,
  },
  "drop-10000": { title: "10 000 users at once claim 1 000 vouchers", users: 10_000, supply: 1_000, redeems: 0 },
} as const satisfies Record<string, Drop>;

/** One drop as the users and the partners beside them saw it. */
export interface DropRound {
  taken: number;
  soldOut: number;
  /** Users who got a 503, which asks them to try again. */
  unavailable: number;
  /** From the first request to the last answer. */
  seconds: number;
  p99Ms: number;
  /** The 99th percentile of redeems before and during the drop; NaN without them. */
  redeemsBeforeMs: number;
  redeemsDuringMs: number;
}

/** Redeems before the crowd sends. Seconds. */
const BEFORE_SECONDS = 4;
/** The load of redeems ends after this time at the latest. Seconds. */
const REDEEMS_MAX_SECONDS = 30;

/**
 * Plays a drop once.
 * @throws Error when an answer contradicts the database, or not exactly the supply is taken.
 */
export async function playDrop(drop: Drop, { running, stage }: Player, signal: AbortSignal): Promise<DropRound> {
  const { productId, users } = await stage.makeDrop(drop.supply, drop.users);
  const requests = users.map(({ token }) =>
    [
      `POST /products/${productId}/claim HTTP/1.1`,
      "Host: localhost",
      `Authorization: Bearer ${token}`,
      "Content-Type: application/json",
      "Content-Length: 2",
      "",
      "{}",
    ].join("\r\n"),
  );
  const redeems = await startRedeems(drop, { running, stage }, signal);
  const [port = 0] = running.ports;
  let sentAt = Number.NaN;
  const answers = await sendAtOnce({ port, requests }, () => {
    sentAt = performance.now();
  });
  const units = await redeems.stop();
  running.check();
  await checkClaims(drop, stage, productId, users, answers);
  const latencies = answers.map(({ latencyMs }) => latencyMs).sort((one, other) => one - other);
  const lastMs = latencies.at(-1) ?? Number.NaN;
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  const before = ({ startedAt, latencyMs }: Unit) => startedAt + latencyMs < sentAt;
  const during = (unit: Unit) => !before(unit) && unit.startedAt < sentAt + lastMs;
  return {
    taken: count(200),
    soldOut: count(409),
    unavailable: count(503),
    seconds: lastMs / 1_000,
    p99Ms: quantile(latencies, 0.99),
    redeemsBeforeMs: p99(units.filter(before)),
    redeemsDuringMs: p99(units.filter(during)),
  };
}

/** The 99th percentile of latencies. Milliseconds. */
function p99(units: readonly Unit[]): number {
  const latencies = units.map(({ latencyMs }) => latencyMs);
  return quantile(
    latencies.sort((one, other) => one - other),
    0.99,
  );
}

/** Starts a closed loop of redeems and resolves after the first {@link BEFORE_SECONDS}. `stop` ends it and returns all its redeems. */
async function startRedeems(
  { redeems }: Drop,
  { running, stage }: Player,
  signal: AbortSignal,
): Promise<{ stop: () => Promise<Unit[]> }> {
  if (redeems === 0) return { stop: async () => [] };
  const ended = new AbortController();
  const load = async (seconds: number, ratePerSecond: number) => {
    await stage.ensure("vouchers", Math.ceil(ratePerSecond * seconds));
    const nextUnit = () => {
      const subject = stage.vouchers.pop();
      return subject && { subject, reference: `drop-${subject.id}` };
    };
    const { ports } = running;
    return {
      loading: runLoad({
        ports,
        connections: redeems,
        seconds,
        steps: CASES.redeem.steps(stage),
        nextUnit,
        signal,
        stop: ended.signal,
      }),
    };
  };
  let rate = FIRST_RATE;
  let before = await (await load(BEFORE_SECONDS, rate)).loading;
  while (before.isCut) {
    rate *= 2;
    before = await (await load(BEFORE_SECONDS, rate)).loading;
  }
  const { loading } = await load(REDEEMS_MAX_SECONDS, before.units.length / before.seconds);
  // A failure is thrown by `stop`.
  loading.catch(() => undefined);
  return {
    async stop() {
      ended.abort();
      return [...before.units, ...(await loading).units];
    },
  };
}

async function checkClaims(
  { supply }: Drop,
  { db }: Stage,
  productId: string,
  users: readonly Subject[],
  answers: readonly CrowdAnswer[],
): Promise<void> {
  const failed = answers.find(({ status }) => ![200, 409, 503].includes(status));
  if (failed !== undefined) throw new Error(`a user was answered ${failed.status} ${failed.body}`);
  const { rows } = await db.query<{ user: string; voucher: string }>(
    'SELECT user_id AS "user", voucher_id AS voucher FROM claims WHERE product_id = $1',
    [productId],
  );
  const claims = new Map(rows.map(({ user, voucher }) => [user, voucher]));
  if (claims.size !== supply || new Set(claims.values()).size !== supply) {
    throw new Error(`${claims.size} claims of ${new Set(claims.values()).size} vouchers, of ${supply}`);
  }
  for (const [index, { status, body }] of answers.entries()) {
    const claimed = claims.get(users[index]?.id ?? "");
    const told = status === 200 ? JSON.parse(body).voucher.id : undefined;
    // A user who was told 503 may have a voucher.
    if (status !== 503 && claimed !== told) throw new Error(`a user was told ${told} and has ${claimed}`);
  }
}

/** The columns of a drop's table. */
export const DROP_COLUMNS: Record<string, (rounds: readonly DropRound[]) => string> = {
  taken: (rounds) => of(rounds, ({ taken }) => taken),
  "sold out": (rounds) => of(rounds, ({ soldOut }) => soldOut),
  "told 503": (rounds) => of(rounds, ({ unavailable }) => unavailable),
  "last answer s": (rounds) => of(rounds, ({ seconds }) => seconds, 1),
  "p99 ms": (rounds) => of(rounds, ({ p99Ms }) => p99Ms),
  "redeem p99 ms before": (rounds) => of(rounds, ({ redeemsBeforeMs }) => redeemsBeforeMs),
  during: (rounds) => of(rounds, ({ redeemsDuringMs }) => redeemsDuringMs),
  "×": (rounds) => of(rounds, ({ redeemsBeforeMs, redeemsDuringMs }) => redeemsDuringMs / redeemsBeforeMs, 1),
};

function of<Round>(rounds: readonly Round[], what: (round: Round) => number, digits = 0): string {
  const value = median(rounds.map(what));
  return Number.isNaN(value) ? "" : value.toFixed(digits);
}
