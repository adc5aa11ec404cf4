import { createServer } from "node:net";

/** Below the ephemeral ports, so that no other process takes a port before its owner has started, or while its owner is dead. */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;

let portsTried = 0;

/** Finds a free port that stays free until its process starts, and while its process is dead. Each call returns another one. */
export async function findSteadyPort(): Promise<number> {
  for (;;) {
    // Each test process starts at another port, so that parallel runs do not collide.
    const port = FIRST_PORT + ((process.pid * 37 + portsTried++) % (LAST_PORT - FIRST_PORT));
    if (await isFree(port)) return port;
  }
}

/** Whether no process listens on a port. */
export function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen(port, () => probe.close(() => resolve(true)));
  });
}
