import pTimeout from "p-timeout";
import type { Logger } from "pino";
import type { OperatorSignIn } from "../console/sign-in/operator-sign-in.ts";
import { type Config, missingSignIn } from "../platform/config.ts";

/** Maximum wait for Postgres at the start. When it is over, the process continues without a response. Milliseconds. */
const WAIT_MAX_MS = 5_000;

interface Deps {
  signIn: Pick<OperatorSignIn, "describeWays">;
  deployment: { ready(): Promise<void> };
  config: Pick<Config, "ops" | "production">;
  log: Logger;
}

/**
 * Logs how operators can sign in. In production, if only named operators can sign in, waits for Postgres to find out
 * whether there are any.
 * @throws ConfigError in production if there is no way to sign in and the operator pages are on.
 */
export async function tellSignIns({ signIn, deployment, config, log }: Deps): Promise<void> {
  const { token, jwksUrl, isOff } = config.ops;
  if (isOff) return log.info("the operator pages are off");
  const read = deployment.ready().then(() => signIn.describeWays());
  const tell = (ways: readonly string[]) => log.info({ ways }, "operators can sign in");
  if (!config.production || token !== null || jwksUrl !== null) {
    void read.then(tell).catch((error) => log.warn({ err: error }, "cannot tell whether there are named operators"));
    return;
  }
  const ways = await pTimeout(read, { milliseconds: WAIT_MAX_MS }).catch((error): null => {
    log.warn({ err: error }, "cannot tell whether there are named operators");
    return null;
  });
  if (ways?.length === 0) throw missingSignIn();
  if (ways !== null) tell(ways);
}
