import { appendFileSync } from "node:fs";
import { Session } from "node:inspector";

// Loaded with `--import` by `npm run -s house -- --measure`. At each SIGUSR2, it appends a line to the file named by
// RECORD_FILES and the process id. The line has the project's files in which a function has run since the last signal.
// At the first signal, it has all loaded files.

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
