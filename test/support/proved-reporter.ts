import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

/** Returns `core` for a file in `test/core`, `faults` for `test/proof/faults`, and `client` for `packages/client`. */
function roomOf(file: string): string {
  const [, room = "", part = ""] = file.split("/");
  return room === "proof" ? part : room.replace(/\.test\.ts$/, "");
}

/** Ends a run with one line that counts the passed tests by folder. */
export default class ProvedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const proved = new Map<string, number>();
    for (const module of modules) {
      const room = roomOf(relative(".", module.moduleId));
      proved.set(room, (proved.get(room) ?? 0) + [...module.children.allTests("passed")].length);
    }
    const counts = [...proved].sort(([, a], [, b]) => b - a);
    const total = counts.reduce((sum, [, count]) => sum + count, 0);
    const rooms = counts.map(([room, count]) => `${room} ${count.toLocaleString("en")}`).join(", ");
    // Prints after the summary of the default reporter, which prints at the same event.
    setImmediate(() => console.log(`Proved: ${total.toLocaleString("en")} guarantees: ${rooms}.\n`));
  }
}
