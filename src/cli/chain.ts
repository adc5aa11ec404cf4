import { type Command, Option } from "commander";
import { verifyAllChains, verifyOneChain } from "../services/verify-chains.ts";
import { action } from "./command.ts";

/** `chain`: the sealed histories. */
export function addChainCommands(program: Command): void {
  const chain = program.command("chain").description("the vouchers' sealed event chains");
  action<{ voucher?: string; all?: boolean }>(
    chain
      .command("verify")
      .description("recompute hashes and links; exits with 1 when a chain is broken")
      .option("--voucher <id>", "one voucher's chain")
      .addOption(new Option("--all", "every chain, which is what it does when told nothing").conflicts("voucher")),
    async (ctx, options) => {
      const result =
        options.voucher === undefined
          ? await verifyAllChains(ctx, (sofar) => {
              ctx.signal.throwIfAborted();
              ctx.progress(`${sofar.vouchers} vouchers, ${sofar.broken.length} broken`);
            })
          : await verifyOneChain(ctx, options.voucher);
      ctx.progress("");
      const broken = result.broken.map(
        (entry) => `BROKEN ${entry.voucherId} at event ${entry.sequence}: ${entry.problem}`,
      );
      ctx.print(
        result,
        [
          ...broken,
          `${result.vouchers} vouchers, ${result.events} events, ${result.broken.length} broken chains.`,
        ].join("\n"),
      );
      if (result.broken.length > 0) process.exitCode = 1;
    },
  );
}
