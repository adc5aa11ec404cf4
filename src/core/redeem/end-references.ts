import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { Batcher } from "../../platform/batching/batcher.ts";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import { awaitStandbys } from "../../platform/db/durability.ts";
import { mayBeFromOneItem, readThenWrite } from "../../platform/db/transaction.ts";
import {
  deleteOldEnds,
  type ExternalRef,
  endReferences,
  lockReferencesToEnd,
  type ReadRedemption,
  readRedemptions,
  refKey,
} from "./db/redemptions.ts";

/** What is certain about a reference. */
type ReferenceOutcome =
  /** A voucher was redeemed under the reference. */
  | { kind: "redeemed"; redemption: NonNullable<ReadRedemption["redemption"]> }
  /** Nothing was redeemed under the reference. Attempts that have already read the reference will redeem nothing. */
  | { kind: "ended" }
  /** Another transaction is redeeming or ending the reference. */
  | { kind: "held" }
  /** Another server has become the primary. It may lack what was read for the response, so nothing is certain. */
  | { kind: "elsewhere" };

/** Maximum number of references, and so of entries in Postgres's table of locks, in one transaction. */
const BATCH_MAX = 128;
/** Maximum number of requests that may wait in one process. */
const WAITING_MAX = 4_000;
/** Pauses between attempts to end a locked reference. A redemption locks it for a few milliseconds. Milliseconds. */
const HELD_PAUSES_MS = [10, 30, 80, 200];
/** Maximum number of rows of `reference_ends` that one statement deletes, in some 100 ms. */
const DELETE_MAX = 10_000;

interface EndRequest {
  ref: ExternalRef;
  /**
   * The id of the server from which the data for the response was read, because a promoted server may lack this data.
   * Null if the response depends only on the reply of a worker, which has waited for the standbys.
   */
  readFrom: string | null;
}
export type ReferenceEnds = Batcher<EndRequest, ReferenceOutcome>;

interface Deps {
  pool: pg.Pool;
  deployment: Pick<DatabaseFence, "serverIdOf">;
}

/** Opens the batcher that ends references. */
export function openReferenceEnds(ctx: Deps): ReferenceEnds {
  return new Batcher((requests: EndRequest[]) => endInOneTransaction(ctx, requests), {
    batchMax: BATCH_MAX,
    waitingMax: WAITING_MAX,
    ownerOf: ({ ref }) => ref.organizationId,
    splitOn: mayBeFromOneItem,
  });
}

/**
 * Reads the redemption of a reference. If there is none, ends every earlier attempt, so that none of them redeems
 * later. Must succeed before a response says that nothing was redeemed. While another transaction has locked the
 * reference, tries again for some hundred milliseconds.
 */
export async function endReference(
  { referenceEnds }: { referenceEnds: ReferenceEnds },
  ref: ExternalRef,
  readFrom: string | null = null,
): Promise<ReferenceOutcome> {
  let outcome = await referenceEnds.submit({ ref, readFrom });
  for (const pauseMs of HELD_PAUSES_MS) {
    if (outcome.kind !== "held") break;
    await sleep(pauseMs);
    outcome = await referenceEnds.submit({ ref, readFrom });
  }
  return outcome;
}

/**
 * Takes the exclusive lock of a reference before it reads the redemption. A worker takes the shared lock before it
 * reads `reference_ends`, and keeps it until its redemption is committed. So either this transaction sees the
 * redemption, or the worker sees that the reference was ended.
 */
async function endInOneTransaction(
  { pool, deployment }: Deps,
  requests: readonly EndRequest[],
): Promise<ReferenceOutcome[]> {
  const refs = [...new Map(requests.map(({ ref }) => [refKey(ref), ref])).values()];
  const { outcomes, serverId } = await readThenWrite(
    pool,
    (tx) => Promise.all([lockReferencesToEnd(tx, refs), readRedemptions(tx, refs)]),
    async ([held, read], tx) => {
      const known = refs.map((_ref, n): ReferenceOutcome => {
        const redemption = read[n]?.redemption ?? null;
        if (redemption !== null) return { kind: "redeemed", redemption };
        return { kind: held.has(n) ? "held" : "ended" };
      });
      const ended = refs.filter((_ref, n) => known[n]?.kind === "ended");
      return {
        result: {
          outcomes: new Map(refs.map((ref, n) => [refKey(ref), known[n]])),
          serverId: deployment.serverIdOf(tx),
        },
        writes: [...endReferences(ended), awaitStandbys()],
      };
    },
  );
  return requests.map(({ ref, readFrom }): ReferenceOutcome => {
    const outcome = outcomes.get(refKey(ref)) ?? { kind: "held" };
    // The server does not matter if a redemption was found, because this transaction has read it itself.
    if (outcome.kind === "redeemed" || readFrom === null || readFrom === serverId) return outcome;
    return { kind: "elsewhere" };
  });
}

/** Deletes records of ended references, once they are too old to matter to an attempt. Returns their number. */
export async function removeEnds({ pool }: { pool: pg.Pool }, untilMs: number): Promise<number> {
  let count = 0;
  for (;;) {
    const deleted = await deleteOldEnds(pool, DELETE_MAX);
    count += deleted;
    if (deleted < DELETE_MAX || performance.now() >= untilMs) return count;
  }
}
