import { parseArgs } from "node:util";

/**
 * Maximum number of processes of each kind. They leave enough connections to the embedded Postgres for commands and for
 * processes that join.
 */
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
  try {
    const { values } = parseArgs({
      options: {
        help: { type: "boolean", short: "h" },
        workers: { type: "string", default: "2" },
        apis: { type: "string", default: "1" },
      },
    });
    if (!values.help) return { workers: readNumber("workers", values.workers), apis: readNumber("apis", values.apis) };
    console.log(HELP);
    process.exit(0);
  } catch (error) {
    console.error(`${(error as Error).message.replace(/\. .*$/s, ".")}\n\n${HELP}`);
    process.exit(2);
  }
}

function readNumber(name: keyof typeof MOST, text: string): number {
  const number = /^\d+$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > MOST[name]) throw new Error(`--${name} must be a number from 1 to ${MOST[name]}.`);
  return number;
}
