import { countIssuedVouchers } from "../core/catalog/db/catalog.ts";
import { type VerifyResult, verifyAllChains, verifyOneChain } from "../core/chain/verify-chains.ts";
import { type CommandContext, type Noun, verb } from "./command.ts";
import { EXIT } from "./exit-code.ts";
import { formatCount, paint, pluralize } from "./format.ts";
import { flag, option } from "./options.ts";

export const chain: Noun = {
  name: "chain",
  description: "the sealed event chains of vouchers",
  verbs: {
    verify: verb({
      description: "recompute hashes and links; exit status 1 when a chain is broken",
      options: { voucher: option("<id>", "one voucher's chain"), all: flag("every chain; the default", ["voucher"]) },
      examples: ["--all", "--voucher vch_… --json"],
      async run(ctx, { voucher }) {
        const result = voucher === undefined ? await verifyAll(ctx) : await verifyOneChain(ctx, voucher);
        ctx.print(result, () => describeResult(result));
        if (result.broken.length > 0) process.exitCode = EXIT.refused;
      },
    }),
  },
};

async function verifyAll(ctx: CommandContext): Promise<VerifyResult> {
  const progress = ctx.progress("Verified", "vouchers", await countIssuedVouchers(ctx.pool));
  return verifyAllChains(ctx, ({ vouchers }) => {
    ctx.signal.throwIfAborted();
    progress.advance(vouchers);
  });
}

function describeResult({ vouchers, events, erased, broken }: VerifyResult): string {
  const ofErased = erased === 0 ? "" : `, ${formatCount(erased)} of them erased`;
  const read = `${pluralize(vouchers, "voucher")}, ${pluralize(events, "event")}${ofErased}`;
  if (broken.length === 0) return `${read}: ${paint("green", "every chain is intact")}.`;
  const lines = broken.map(
    (entry) => `${paint("red", "BROKEN")} ${entry.voucherId} at event ${entry.sequence}: ${entry.problem}`,
  );
  return [...lines, `${read}: ${paint("red", pluralize(broken.length, "broken chain"))}.`].join("\n");
}
