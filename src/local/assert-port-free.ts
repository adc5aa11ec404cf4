import { createServer } from "node:net";

/** Asserts that a port is free, so that no other process answers there instead. @throws Error with a message for the user. */
export function assertPortFree(port: number): Promise<void> {
  if (port === 0) throw new Error("PORT is 0, but links need a port that stays the same. Use one: PORT=3000 npm start");
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => reject(new Error(explain(port, error), { cause: error })));
    probe.listen(port, () => probe.close(() => resolve()));
  });
}

function explain(port: number, { code, message }: NodeJS.ErrnoException): string {
  if (code === "EADDRINUSE") {
    return `Another process listens on port ${port}. Stop it or use another port: PORT=${port === 65_535 ? port - 1 : port + 1} npm start`;
  }
  if (code === "EACCES") return `Listening on port ${port} is not permitted. Use another port: PORT=3000 npm start`;
  return `Cannot listen on port ${port}: ${message}`;
}
