import { OperatorSignIn } from "../console/sign-in/operator-sign-in.ts";
import type { Config } from "../platform/config.ts";
import { openWebhookSender } from "../platform/outgoing/send-webhook.ts";
import { AlertTeller } from "../watch/alerts/alert-teller.ts";
import { watchFaults } from "../watch/alerts/watch-faults.ts";
import { type AdministrationDeps, openAdministration } from "./open-administration.ts";
import { each } from "./wings/api.ts";

/**
 * Postgres connections for operators' changes: while one issues or voids a batch, the others are free. Opened on
 * demand.
 */
const CONSOLE_CONNECTIONS_MAX = 3;

type Watched = Omit<Parameters<typeof watchFaults>[0], "readFinders" | "alerts">;
type Told = Omit<ConstructorParameters<typeof AlertTeller>[0], "webhookSender">;
type SigningIn = ConstructorParameters<typeof OperatorSignIn>[0];

/** Opens what operators need: alerts of faults, the sign-in, and the means to change something. */
export function openOperators(ctx: Watched & Told & SigningIn & AdministrationDeps & { config: Config }) {
  const { config, use, endRuns } = ctx;
  const webhookSender = use(openWebhookSender({ ...config.webhooks, endRuns }));
  const alerts = use(new AlertTeller({ ...ctx, webhookSender }));
  const readFinders = each("readFinders");
  use(watchFaults({ ...ctx, readFinders, alerts }));
  return { webhookSender, readFinders, signIn: new OperatorSignIn(ctx), console: openConsole(ctx) };
}

/**
 * Opens what the operator pages need to change something: connections, and a signal that ends long runs when the
 * process closes. Null without OPS_WRITABLE.
 */
function openConsole(ctx: AdministrationDeps & { config: Pick<Config, "ops"> }) {
  const { isOff, writable, databaseUrl } = ctx.config.ops;
  if (isOff || !writable) return null;
  const pool = openAdministration(ctx, { databaseUrl, max: CONSOLE_CONNECTIONS_MAX, applicationName: "api-console" });
  return { pool, signal: ctx.endRuns };
}
