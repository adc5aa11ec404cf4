import type { Command } from "commander";
import { buildProgram } from "../cli/program.ts";
import { WINGS } from "./wings.ts";

const PARTS = (await Promise.all(WINGS.map(({ commands }) => commands?.()))).filter((part) => part !== undefined);

/** Builds `voucherctl` with the commands of the wings. */
export function buildVoucherctl(): Command {
  return buildProgram(PARTS);
}
