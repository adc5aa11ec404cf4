import type { Logger } from "pino";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { type ReportToken, TOKEN_VARIABLES, type TokenVariable } from "../keys/authenticate-user.ts";
import { reportPrefix } from "./minute-counts.ts";

/** The last report that a variable makes tokens or keys unusable. */
export interface TokenReport {
  variable: TokenVariable;
  what: string;
}

/** How long a report is shown: long enough for an operator to open the overview. Milliseconds. */
const KEPT_MS = 900_000;
/** Minimum time between two reports of a variable by one process. Milliseconds. */
const REPORT_EVERY_MS = 5_000;

interface Deps {
  redis: RedisClient;
  deployment: DeploymentIdentity;
  log: Pick<Logger, "debug">;
}

/** Stores the last report about each variable in Redis, where the overview of every API process finds it. */
export function openTokenReports({ redis, deployment, log }: Deps): ReportToken {
  const reportedAt = new Map<string, number>();
  const write = async (variable: string, what: string) => {
    await redis.set(keyOf(deployment, variable), what, "PX", KEPT_MS);
  };
  return (variable, what) => {
    const now = performance.now();
    if (now - (reportedAt.get(variable) ?? -Infinity) < REPORT_EVERY_MS) return;
    reportedAt.set(variable, now);
    write(variable, what).catch((error) => log.debug({ err: error }, "cannot report a refused token"));
  };
}

/** Reads the reports of all processes. @throws Error when Redis does not answer. */
export async function readTokenReports(
  redis: RedisClient,
  deployment: Pick<DeploymentIdentity, "id">,
): Promise<TokenReport[]> {
  const found = await redis.mget(TOKEN_VARIABLES.map((variable) => keyOf(deployment, variable)));
  return TOKEN_VARIABLES.flatMap((variable, at) => (found[at] ? [{ variable, what: found[at] }] : []));
}

const keyOf = (deployment: Pick<DeploymentIdentity, "id">, variable: string) =>
  `${reportPrefix(deployment)}:token:${variable}`;
