import type pg from "pg";
import { AppError } from "../../platform/api/errors.ts";
import { Batcher } from "../../platform/batching/batcher.ts";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import { awaitStandbys } from "../../platform/db/durability.ts";
import { readThenWrite } from "../../platform/db/transaction.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";

/** Waits for standbys. An item is the primary's id, taken before a read. False if another server is the primary now. */
export type Confirmations = Batcher<string, boolean>;

/**
 * Opens the batcher that waits for the synchronous standbys, on one connection. One transaction confirms all waiting
 * reads, so this batcher never refuses a read. Only the number of connections that the process accepts limits how many
 * wait.
 */
export function openConfirmations(ctx: {
  pool: pg.Pool;
  deployment: Pick<DatabaseFence, "serverIdOf">;
}): Confirmations {
  return new Batcher((readFrom: string[]) => confirmAll(ctx, readFrom), {
    batchMax: Number.POSITIVE_INFINITY,
    waitingMax: Number.POSITIVE_INFINITY,
  });
}

/** What {@link readConfirmed} needs. */
export interface Confirming {
  deployment: Pick<DeploymentIdentity, "serverId">;
  confirmations: Confirmations;
}

/**
 * Runs `read`. If its result `isFinal`, waits until the synchronous standbys have the data that was read, because until
 * then a failover could undo the data.
 * @throws AppError `unavailable` when another server has become the primary, which may lack the data.
 */
export async function readConfirmed<T>(
  ctx: Confirming,
  read: () => Promise<T>,
  isFinal: (found: T) => boolean = () => true,
): Promise<T> {
  const readFrom = ctx.deployment.serverId;
  const found = await read();
  if (isFinal(found)) await awaitConfirmation(ctx, readFrom);
  return found;
}

/**
 * Resolves once the synchronous standbys have everything that was committed before.
 * @param readFrom the server's id, taken before the read.
 * @throws AppError `unavailable` when another server has become the primary, which may lack the data.
 */
export async function awaitConfirmation({ confirmations }: Pick<Confirming, "confirmations">, readFrom: string) {
  if (!(await confirmations.submit(readFrom))) throw new AppError("unavailable");
}

/** Commits one transaction. Its COMMIT returns once the standbys have all earlier write-ahead log. */
function confirmAll(
  { pool, deployment }: Parameters<typeof openConfirmations>[0],
  readFrom: readonly string[],
): Promise<boolean[]> {
  return readThenWrite(
    pool,
    async () => null,
    async (_seen, tx) => {
      const serverId = deployment.serverIdOf(tx);
      return { result: readFrom.map((from) => from === serverId), writes: [awaitStandbys()] };
    },
  );
}
