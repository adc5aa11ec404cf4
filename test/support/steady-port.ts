import { createServer } from "node:net";

/**
 * The ports are below the ephemeral ones, so that no other process takes one before its owner starts or while its owner
 * is stopped.
 */
const FIRST_PORT = 20_000;
/** Vitest runs files at once, each in a process with its own pool id. Each id has its own ports. */
const PORTS_EACH = 1_250;
const poolId = Number(process.env.VITEST_POOL_ID ?? 0) % 8;

let portsTried = 0;

/** Finds a port that stays free until its process starts, and while it is stopped. Each call returns another. */
export async function findSteadyPort(): Promise<number> {
  for (;;) {
    // Child processes of the previous test file may still use ports, so each test process begins elsewhere.
    const port = FIRST_PORT + poolId * PORTS_EACH + ((process.pid * 37 + portsTried++) % PORTS_EACH);
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
