import type pg from "pg";
import { endOverdueContracts } from "./db/contracts.ts";

/** Maximum number of contracts that one pass ends. */
const CONTRACTS_MAX = 1_000;

/** What the marketplace adds to the sweeper. */
export const openSweepTasks = ({ pool }: { pool: pg.Pool }) => ({
  endContracts: () => endOverdueContracts(pool, { limit: CONTRACTS_MAX }),
});
