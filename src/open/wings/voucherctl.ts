import type { Command } from "commander";
import { buildProgram, type CommandPart } from "../../cli/program.ts";
import { transparency } from "../../transparency/in-voucherctl.ts";
import { webhooks } from "../../webhooks/in-voucherctl.ts";

const WINGS: readonly CommandPart[] = [transparency, webhooks];

/** Builds `voucherctl` with the commands of the wings. */
export function buildVoucherctl(): Command {
  return buildProgram(WINGS);
}
