import { createServer } from "node:net";

/**
 * Listens on a port for a moment, on all interfaces as the API does. Whoever already listens there would answer in its stead.
 * @throws Error, for people, when it cannot be listened on.
 */
export function demandFreePort(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => reject(new Error(explain(port, error), { cause: error })));
    probe.listen(port, () => probe.close(() => resolve()));
  });
}

function explain(port: number, { code, message }: NodeJS.ErrnoException): string {
  if (code === "EADDRINUSE") {
    return `Another process listens on port ${port}. Stop it, or give another port: PORT=${port === 65_535 ? port - 1 : port + 1} npm start`;
  }
  if (code === "EACCES") return `You may not listen on port ${port}. Give another port: PORT=3000 npm start`;
  return `Nothing can listen on port ${port}: ${message}`;
}
