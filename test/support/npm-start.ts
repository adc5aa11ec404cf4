import { fileURLToPath } from "node:url";
import { type Started, startNode } from "./child-process.ts";
import { until } from "./until.ts";

const START = fileURLToPath(new URL("../../src/local/start.ts", import.meta.url));
const { HOME = "" } = process.env;

/** `npm start` as a new user runs it, in its own folder and without configured servers. */
export const startIn = (directory: string, port: number): Started =>
  startNode([START], { HOME, PORT: String(port) }, directory);

/** Waits until `npm start` serves. @throws Error with its output if it ends before. */
export async function untilReady({ output, child }: Started): Promise<void> {
  await until(() => output().includes("Ctrl-C stops everything") || child.exitCode !== null);
  if (child.exitCode !== null) throw new Error(output());
}

/** Ends a program with Ctrl-C. Returns its exit status. */
export async function interrupt({ child, ended }: Started): Promise<number | null> {
  child.kill("SIGINT");
  return (await ended).exitCode;
}
