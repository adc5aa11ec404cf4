import { CASES } from "./cases.ts";
import { of } from "./drop.ts";
import { runLoad } from "./load.ts";
import { type Player, readUsage } from "./play-case.ts";
import type { BenchServers, Stage } from "./stage.ts";

/** Redeems of an organization without a webhook endpoint and with one. No worker sends: only the cost of the redeems counts. */
export interface Announced {
  title: string;
  redeems: number;
}

export const ANNOUNCED = {
  "webhook-endpoint": { title: "64 redeems at once, without and with a webhook endpoint", redeems: 64 },
} as const satisfies Record<string, Announced>;

export interface AnnouncedRound {
  /** CPU time per redeem of the API, worker, Redis and Postgres. Microseconds. */
  without: number;
  with: number;
}

/** Length of each turn of a round: one that does not count, and four that do. */
const TURN_SECONDS = 6;
/** More than two cores can redeem. */
const REDEEMS_PER_SECOND = 1_500;

/**
 * Plays it once: a turn that does not count, then without, with, with, without, so that a steady change of the machine affects both alike.
 * @throws Error when a redeem is refused, or the outbox does not contain exactly the redeems of the turns with an endpoint.
 */
export async function playAnnounced(
  announced: Announced,
  { running, stage }: Player,
  signal: AbortSignal,
  servers: BenchServers,
): Promise<AnnouncedRound> {
  const spent = { lead: 0, without: 0, with: 0 };
  const redeemed = { lead: 0, without: 0, with: 0 };
  await stage.ensure("vouchers", 5 * TURN_SECONDS * REDEEMS_PER_SECOND);
  await stage.db.query("TRUNCATE webhook_outbox");
  for (const turn of ["lead", "without", "with", "with", "without"] as const) {
    await setEndpoint(stage, turn === "with");
    const before = await readUsage(servers, running, stage);
    const { units } = await runLoad({
      ...{ ports: running.ports, connections: announced.redeems, seconds: TURN_SECONDS, signal },
      steps: CASES.redeem.steps(stage),
      nextUnit: () => {
        const subject = stage.vouchers.pop();
        if (subject === undefined) throw new Error("the supply is too small for this machine");
        return { subject, reference: `announced-${subject.id}` };
      },
    });
    const after = await readUsage(servers, running, stage);
    spent[turn] += cpuOf(after) - cpuOf(before);
    redeemed[turn] += units.length;
  }
  running.check();
  const { rows } = await stage.db.query(
    "SELECT coalesce(sum(cardinality(voucher_ids)), 0)::int AS count FROM webhook_outbox",
  );
  // Each turn ends with requests whose answer it does not wait for.
  if (rows[0].count < redeemed.with || rows[0].count > redeemed.with + 3 * announced.redeems) {
    throw new Error(`the outbox contains ${rows[0].count} events of ${redeemed.with} redeems`);
  }
  return { without: spent.without / redeemed.without, with: spent.with / redeemed.with };
}

/** All processes except the client. */
function cpuOf({ cpu, redisServers }: Awaited<ReturnType<typeof readUsage>>): number {
  return redisServers.reduce((sum, micros) => sum + micros, cpu.api + cpu.worker + cpu.postgres);
}

/** Gives the partner an enabled endpoint, or none. */
async function setEndpoint({ db, partner }: Stage, isEnabled: boolean): Promise<void> {
  await db.query("DELETE FROM webhook_endpoints");
  if (!isEnabled) return;
  await db.query(
    `INSERT INTO webhook_endpoints (id, organization_id, place, url)
     SELECT 'whk_bench', b.organization_id, 1, 'https://hooks.example.com/' FROM products AS p JOIN brands AS b ON b.id = p.brand_id WHERE p.id = $1`,
    [partner.productId],
  );
}

/** The columns of its table. */
export const ANNOUNCED_COLUMNS: Record<string, (rounds: readonly AnnouncedRound[]) => string> = {
  "CPU µs without": (rounds) => of(rounds, (round) => round.without),
  with: (rounds) => of(rounds, (round) => round.with),
  "×": (rounds) => of(rounds, (round) => round.with / round.without, 3),
  "× of each round": (rounds) => rounds.map((round) => (round.with / round.without).toFixed(3)).join(" "),
};
