import { type Command, Option } from "commander";
import { countIssuedVouchers } from "../db/catalogue.ts";
import { type ChainVerifier, type VerifyResult, verifyAllChains, verifyOneChain } from "../services/verify-chains.ts";
import { action, type CommandContext } from "./command.ts";
import { EXIT } from "./exit-code.ts";
import { showNumberOf } from "./figures.ts";
import { paint } from "./paint.ts";
import { withVerifyThreads } from "./verify-in-threads.ts";

/** `chain`: the sealed histories. */
export function addChainCommands(program: Command): void {
  const chain = program.command("chain").description("the vouchers' sealed event chains");
  action<{ voucher?: string; all?: boolean }>(
    chain
      .command("verify")
      .description("recompute hashes and links; exit status 1 when a chain is broken")
      .option("--voucher <id>", "one voucher's chain")
      .addOption(new Option("--all", "every chain, which is what it does when told nothing").conflicts("voucher")),
    ["chain verify --all", "chain verify --voucher vch_… --json"],
    async (ctx, options) => {
      const result = options.voucher === undefined ? await verifyAll(ctx) : await verifyOneChain(ctx, options.voucher);
      await ctx.print(result, () => describeResult(result));
      if (result.broken.length > 0) process.exitCode = EXIT.refused;
    },
  );
}

/** Vouchers from which on threads save more than it takes to start them. */
const THREADS_FROM = 20_000;

async function verifyAll(ctx: CommandContext): Promise<VerifyResult> {
  const vouchers = await countIssuedVouchers(ctx.pool);
  const progress = ctx.progress("Verified", "vouchers", vouchers);
  const verify = (verifier?: ChainVerifier) =>
    verifyAllChains(
      ctx,
      (sofar) => {
        ctx.signal.throwIfAborted();
        progress.advance(sofar.vouchers);
      },
      verifier,
    );
  return vouchers < THREADS_FROM ? verify() : withVerifyThreads(ctx.databaseUrl, verify);
}

function describeResult({ vouchers, events, broken }: VerifyResult): string {
  const read = `${showNumberOf(vouchers, "voucher")}, ${showNumberOf(events, "event")}`;
  if (broken.length === 0) return `${read}: ${paint("green", "every chain is sound")}.`;
  const lines = broken.map(
    (entry) => `${paint("red", "BROKEN")} ${entry.voucherId} at event ${entry.sequence}: ${entry.problem}`,
  );
  return [...lines, `${read}: ${paint("red", showNumberOf(broken.length, "broken chain"))}.`].join("\n");
}
