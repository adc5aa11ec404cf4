import type { CommandPart } from "../cli/program.ts";
import { webhook } from "./commands/webhook.ts";

export const commands: CommandPart = { key: [webhook] };
