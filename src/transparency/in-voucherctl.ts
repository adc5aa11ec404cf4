import type { CommandPart } from "../cli/program.ts";
import { log } from "./commands/log.ts";
import { receipt } from "./commands/receipt.ts";
import { witness } from "./commands/witness.ts";

export const commands: CommandPart = { chain: [log, receipt, witness] };
