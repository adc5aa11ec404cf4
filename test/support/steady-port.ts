import { createServer } from "node:net";

/** Below the ephemeral ports, so that no other process takes a port before its owner starts or while it is dead. */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;

let portsTried = 0;

/** Finds a free port that stays free until a process listens on it, and while that process is dead. */
export async function findSteadyPort(): Promise<number> {
  for (;;) {
    // Each test process starts at another port, so that parallel runs do not collide.
    const port = FIRST_PORT + ((process.pid * 37 + portsTried++) % (LAST_PORT - FIRST_PORT));
    if (await isFree(port)) return port;
  }
}

/** Whether no process listens on a port or uses it for a connection. */
export function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen(port, () => probe.close(() => resolve(true)));
  });
}
