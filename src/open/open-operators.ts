import { OperatorSignIn } from "../console/sign-in/operator-sign-in.ts";
import type { Config } from "../platform/config.ts";
import { openWebhookSender } from "../platform/outgoing/send-webhook.ts";
import { FaultWatch } from "../watch/watch.ts";
import { type AdministrationDeps, openAdministration } from "./open-administration.ts";

/** Postgres connections for operators' changes. Issuing or voiding a batch may use one for long. Opened when needed. */
const CONSOLE_CONNECTIONS_MAX = 3;

type Watched = Omit<ConstructorParameters<typeof FaultWatch>[0], "webhookSender">;
type SigningIn = ConstructorParameters<typeof OperatorSignIn>[0];

/** Opens what operators need: alerts about faults, the sign-in, and the connections for changes. */
export function openOperators(ctx: Watched & SigningIn & AdministrationDeps & { config: Config }) {
  const { config, use, endRuns } = ctx;
  const webhookSender = use(openWebhookSender({ allowPrivate: config.privateReceivers, endRuns }));
  const watch = use(new FaultWatch({ ...ctx, webhookSender }));
  return { webhookSender, watch, signIn: new OperatorSignIn(ctx), console: openConsole(ctx) };
}

/**
 * Opens what operator pages need for changes: connections, and a signal that ends long runs when the process closes.
 * Null unless OPS_WRITABLE is set.
 */
function openConsole(ctx: AdministrationDeps & { config: Pick<Config, "ops"> }) {
  const { isOff, writable, databaseUrl } = ctx.config.ops;
  if (isOff || !writable) return null;
  const pool = openAdministration(ctx, { databaseUrl, max: CONSOLE_CONNECTIONS_MAX, applicationName: "api-console" });
  return { pool, signal: ctx.endRuns };
}
