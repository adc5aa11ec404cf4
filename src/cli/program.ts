import { Command } from "commander";
import { addAuditCommands } from "./audit.ts";
import { addBatchCommands } from "./batch.ts";
import { addChainCommands } from "./chain.ts";
import { addDbCommands } from "./db.ts";
import { addKeyCommands } from "./key.ts";
import { addMarketplaceCommands } from "./marketplace.ts";
import { addOrgCommands } from "./org.ts";
import { addProductCommands } from "./product.ts";
import { addUserCommands } from "./user.ts";
import { addVoucherCommands } from "./voucher.ts";

/** `voucherctl` with every command that it has. */
export function buildProgram(): Command {
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
  addAuditCommands(program);
  addDbCommands(program);
  return program;
}
