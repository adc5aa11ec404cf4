import { readFileSync } from "node:fs";
import { UsageError } from "./exit-code.ts";

/** Reads a file that the command line names. @throws UsageError if it is unreadable or larger than `bytesMax` bytes. */
export function readText(file: string, bytesMax: number): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
  if (bytes.length > bytesMax) throw new UsageError(`${file} is too long.`);
  return bytes.toString();
}
