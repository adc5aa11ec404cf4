import { readArguments, readNumber } from "./read-arguments.ts";

/** Maximum number of processes. The rest of the embedded Postgres' connections is for commands and joined processes. */
const MOST = { workers: 16, apis: 4 };

const HELP = `Usage: npm start -- [--workers N] [--apis N]

Starts Postgres, Redis, the API and two workers, and on the first start a demo.
Data is kept in .data/. Ctrl-C stops everything.

  --workers N                 worker processes: 1 to ${MOST.workers}, 2 by default
  --apis N                    API processes: 1 to ${MOST.apis}, 1 by default; each further
                              one listens on the next free port
  PORT=4000 npm start         another port
  DATABASE_URL=… npm start    your own Postgres; REDIS_URL=… your own Redis
  npm run worker              one more worker while it runs; npm run api likewise
  npm run backup -- FILE      a copy of the data; npm run restore -- FILE

docs/configuration.md leads to every variable.`;

/** Reads how many processes to start. Answers --help. For unknown arguments, ends the process with status 2. */
export function readStartOptions(): { workers: number; apis: number } {
  const options = { workers: { type: "string", default: "2" }, apis: { type: "string", default: "1" } } as const;
  return readArguments(options, HELP, ({ workers, apis }) => ({
    workers: readNumber("workers", workers, 1, MOST.workers),
    apis: readNumber("apis", apis, 1, MOST.apis),
  }));
}
