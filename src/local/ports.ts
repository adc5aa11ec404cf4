import { type AddressInfo, createServer } from "node:net";

/** Finds a TCP port on loopback that is free now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** Finds the first free port that is at least `from` and not in `taken`. @throws Error when there is none. */
export async function firstFreePort(from: number, taken: readonly number[] = []): Promise<number> {
  for (let port = from; port <= 65_535; port += 1) {
    if (taken.includes(port)) continue;
    const isFree = await tryPort(port).then(
      () => true,
      () => false,
    );
    if (isFree) return port;
  }
  throw new Error(`There is no free port from ${from} on.`);
}

/** Asserts that no other process listens on a port. Otherwise that process would answer in place of this service. */
export async function assertPortFree(port: number): Promise<void> {
  if (port === 0) throw new Error("PORT is 0, but links need a port that stays the same. Use one: PORT=3000 npm start");
  await tryPort(port).catch((error: NodeJS.ErrnoException) => {
    throw new Error(explainPort(port, error), { cause: error });
  });
}

function tryPort(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(port, () => probe.close(() => resolve()));
  });
}

function explainPort(port: number, { code, message }: NodeJS.ErrnoException): string {
  if (code === "EADDRINUSE") {
    return (
      `Another process listens on port ${port}. Stop it or use another port: ` +
      `PORT=${port === 65_535 ? port - 1 : port + 1} npm start`
    );
  }
  if (code === "EACCES") return `Listening on port ${port} is not permitted. Use another port: PORT=3000 npm start`;
  return `Cannot listen on port ${port}: ${message}`;
}
