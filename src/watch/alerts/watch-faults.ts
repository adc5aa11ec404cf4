import { setTimeout as sleep } from "node:timers/promises";
import type { Bulkhead } from "../../core/callers/bulkhead.ts";
import { type Config, hasConfiguredSignIn } from "../../platform/config.ts";
import type { Closable } from "../../platform/lifetime.ts";
import { knownId, type OverviewDeps } from "../facts.ts";
import { lookForFaults, nameOf } from "../find-attention.ts";
import type { AlertTeller } from "./alert-teller.ts";

/** Pause between two looks. Milliseconds. */
const LOOK_EVERY_MS = 4_000;
/** Maximum age of another process's look that this process uses instead. Milliseconds. */
const LOOK_MAX_AGE_MS = 3_000;

/** Long enough to reach a Postgres that starts together with this process. Milliseconds. */
const UNREACHED_MS = 20_000;

interface Deps extends OverviewDeps {
  config: OverviewDeps["config"] & Pick<Config, "ops" | "alerts" | "production">;
  operatorReads: Bulkhead<"none">;
  alerts: Pick<AlertTeller, "tell">;
}

/**
 * Looks for faults even if no operator has a page open, so that their beginnings are known, and sends messages about
 * red faults to ALERT_URL. Does nothing in a process that has neither operators' pages nor ALERT_URL.
 */
export function watchFaults(ctx: Deps): Closable {
  const { config } = ctx;
  const closing = new AbortController();
  const startedAtMs = performance.now();
  const run = async () => {
    while (!closing.signal.aborted) {
      await look(ctx, startedAtMs).catch((error) => ctx.log.debug({ err: error }, "cannot look for faults"));
      await sleep(LOOK_EVERY_MS, undefined, { ref: false, signal: closing.signal }).catch(() => undefined);
    }
  };
  if (hasConfiguredSignIn(config) || config.alerts.url !== null) void run();
  return { close: async () => closing.abort() };
}

async function look(ctx: Deps, startedAtMs: number): Promise<void> {
  const { attention, isAlone } = await ctx.operatorReads({}, () => lookForFaults(ctx, LOOK_MAX_AGE_MS));
  // While this process cannot see the other processes, those send the messages.
  if (isAlone) return;
  // The process cannot know what was sent before it reaches the database. In the end it may send a message again.
  if (knownId(ctx.deployment) === null && performance.now() - startedAtMs < UNREACHED_MS) return;
  const red = attention.filter(({ severity }) => severity === "red");
  // Not awaited, because a receiver may take long.
  void ctx.alerts.tell(red.map((fault) => ({ ...fault, fault: nameOf(fault) })));
}
