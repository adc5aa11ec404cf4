import { appendFileSync } from "node:fs";
import { Session } from "node:inspector";

// `npm run -s house -- --measure` loads this file with `--import`. At each SIGUSR2, the process appends a line to the
// file that RECORD_FILES and the process id name: the project's files in which a function has run since the previous
// signal. At the first signal, these are all loaded files.

const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true });
process.on("SIGUSR2", () =>
  session.post("Profiler.takePreciseCoverage", (_, { result }) => {
    const used = result.filter(({ functions }) =>
      functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)),
    );
    const own = used.flatMap(
      ({ url }) => /^(?!.*\/node_modules\/).*\/((?:src|workers|packages)\/.*)$/.exec(url)?.[1] ?? [],
    );
    appendFileSync(`${process.env.RECORD_FILES}-${process.pid}`, `${JSON.stringify([...new Set(own)].sort())}\n`);
  }),
);
