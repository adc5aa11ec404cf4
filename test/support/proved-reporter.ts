import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

/** The folders of tests and packages by the names that the summary gives them. */
const AREAS: Record<string, string> = {
  api: "API",
  bench: "benchmarks",
  browser: "browsers",
  db: "database",
  e2e: "end to end",
  faults: "faults",
  hostile: "hostile input",
  limits: "limits",
  model: "model",
  observability: "observability",
  races: "races",
  unit: "unit",
  workers: "workers",
};

/** Ends a run with one line that counts the guarantees proved, by area. */
export default class ProvedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const proved = new Map<string, number>();
    for (const module of modules) {
      const [, folder = ""] = relative(".", module.moduleId).split("/");
      const area = AREAS[folder] ?? folder;
      proved.set(area, (proved.get(area) ?? 0) + [...module.children.allTests("passed")].length);
    }
    const counts = [...proved].sort(([, a], [, b]) => b - a);
    const total = counts.reduce((sum, [, count]) => sum + count, 0);
    const areas = counts.map(([area, count]) => `${area} ${count.toLocaleString("en")}`).join(", ");
    // After the summary of the default reporter, which prints at the same event.
    setImmediate(() => console.log(`Proved: ${total.toLocaleString("en")} guarantees: ${areas}.\n`));
  }
}
