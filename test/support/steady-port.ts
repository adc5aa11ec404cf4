import { createServer } from "node:net";

/** Below the ephemeral ports, so that no other process takes a port while its owner is dead. */
const FIRST_PORT = 20_000;
const LAST_PORT = 32_000;

let portsTried = 0;

/** Finds a free port that stays free while its process is dead. */
export async function findSteadyPort(): Promise<number> {
  for (;;) {
    // Each test process starts at another port, so that parallel runs do not collide.
    const port = FIRST_PORT + ((process.pid * 37 + portsTried++) % (LAST_PORT - FIRST_PORT));
    const probe = createServer();
    const free = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
