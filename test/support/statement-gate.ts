import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A proxy to Postgres that sees each statement of its clients. */
export interface StatementGate {
  /** The server's address with the proxy's host and port. */
  url: string;
  /**
   * Counts statements from the first one that begins a writing transaction. Forwards statements up to the limit, then
   * calls `onReached` and forwards no more. A new limit ends the count of earlier clients.
   */
  limit(statements: number, onReached: () => void): void;
  close(): Promise<void>;
}

interface Limit {
  statements: number;
  onReached: () => void;
  seen: number;
  isWriting: boolean;
}

/** Whether a message of a client runs a statement: Query or Execute of the protocol. */
const RUNS = /^[QE]/;

/** Opens a gate in front of the server at `target`. It forwards everything until it has a limit. */
export async function openStatementGate(target: string): Promise<StatementGate> {
  const to = new URL(target);
  const sockets = new Set<Socket>();
  let limit: Limit = { statements: Number.POSITIVE_INFINITY, onReached: () => undefined, seen: 0, isWriting: false };
  const proxy = createServer((client) => {
    const own = limit;
    const server = connect(Number(to.port), to.hostname);
    for (const socket of [client, server]) sockets.add(socket.on("error", () => undefined));
    const pass = (message: Buffer) => {
      if (own.seen >= own.statements) return;
      server.write(message);
      const text = message.toString("latin1");
      own.isWriting ||= text.includes("SET TRANSACTION READ WRITE");
      if (!own.isWriting || !RUNS.test(text)) return;
      own.seen += 1;
      if (own.seen === own.statements) own.onReached();
    };
    const read = splitMessages(pass);
    client.on("data", read).on("close", () => server.end());
    server.on("data", (bytes) => client.write(bytes)).on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const url = Object.assign(new URL(target), { host: `127.0.0.1:${(proxy.address() as AddressInfo).port}` });
  return {
    url: url.href,
    limit(statements, onReached) {
      limit = { statements, onReached, seen: 0, isWriting: false };
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => proxy.close(() => resolve()));
    },
  };
}

/** Splits a client's data into messages. The startup message and earlier messages have no type. */
function splitMessages(pass: (message: Buffer) => void): (bytes: Buffer) => void {
  let rest = Buffer.alloc(0);
  let typeLength = 0;
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= typeLength + 4) {
      const length = typeLength + rest.readInt32BE(typeLength);
      if (rest.length < length) return;
      const message = rest.subarray(0, length);
      rest = rest.subarray(length);
      pass(message);
      // A request for TLS has 8 bytes, and the startup message follows it.
      if (length > 8) typeLength = 1;
    }
  };
}
