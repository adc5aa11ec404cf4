import { Command } from "commander";
import { AppError } from "../domain/errors.ts";
import { addBatchCommands } from "./batch.ts";
import { addChainCommands } from "./chain.ts";
import { explain } from "./explain.ts";
import { addKeyCommands } from "./key.ts";
import { addMarketplaceCommands } from "./marketplace.ts";
import { addOrgCommands } from "./org.ts";
import { addProductCommands } from "./product.ts";
import { addUserCommands } from "./user.ts";
import { addVoucherCommands } from "./voucher.ts";

const program = new Command("voucherctl")
  .description("Administers vouchers. Uses DATABASE_URL and REDIS_URL, or the embedded servers without them.")
  .showHelpAfterError();
addOrgCommands(program);
addProductCommands(program);
addKeyCommands(program);
addBatchCommands(program);
addVoucherCommands(program);
addChainCommands(program);
addMarketplaceCommands(program);
addUserCommands(program);

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${error instanceof AppError ? error.message : explain(error)}\n`);
  process.exitCode = 1;
}
