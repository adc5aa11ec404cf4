import type { Command } from "commander";
import { AppError } from "../domain/errors.ts";
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
      .option("--all", "every chain"),
    async (ctx, options) => {
      if ((options.voucher === undefined) === (options.all !== true)) {
        throw new AppError("invalid_request", "Give either --voucher ID or --all.");
      }
      const result =
        options.voucher === undefined
          ? await verifyAllChains(ctx, (sofar) =>
              ctx.progress(`${sofar.vouchers} vouchers, ${sofar.broken.length} broken`),
            )
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
