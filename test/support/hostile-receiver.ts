import { type AddressInfo, createServer, type Socket } from "node:net";

const OK = "HTTP/1.1 200 OK\r\n";
/** The interval of an endless answer's parts, in milliseconds, and the size of a part. */
const MORE_MS = 10;
const MORE_BYTES = 16_384;

/** Ways in which a webhook's receiver answers a request. Most answers never end. */
const ANSWERS = {
  upgrade: (socket) =>
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
  continues: (socket) => sendMore(socket, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
  silence: () => undefined,
  close: (socket) => socket.destroy(),
  slowHeaders: (socket) => {
    socket.write(OK);
    sendMore(socket, "X-A: 1\r\n", 500, 1);
  },
  slowBody: (socket) => {
    socket.write(`${OK}Content-Length: 9999\r\n\r\n`);
    sendMore(socket, "x", 500, 1);
  },
  chunkExtensions: (socket) => {
    socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n1;`);
    sendMore(socket, "a");
  },
  late: (socket) => void setTimeout(() => socket.write(`${OK}Content-Length: 0\r\n\r\n`), 14_000).unref(),
} satisfies Record<string, (socket: Socket) => unknown>;

export type HostileKind = keyof typeof ANSWERS;
export const HOSTILE_KINDS = Object.keys(ANSWERS) as HostileKind[];

/** Starts a receiver of webhooks on loopback that answers each request in the same hostile way. */
export async function startHostileReceiver(
  kind: HostileKind,
): Promise<{ url: string; requests: () => number; connections: () => number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  let requests = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    socket.on("data", (bytes) => {
      if (!bytes.includes("POST /")) return;
      requests += 1;
      ANSWERS[kind](socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => requests,
    connections: () => sockets.size,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Sends endless text as fast as the other side reads it. */
function sendMore(socket: Socket, text: string, everyMs = MORE_MS, times = Math.ceil(MORE_BYTES / text.length)): void {
  const more = text.repeat(times);
  const timer = setInterval(() => {
    if (!socket.writableNeedDrain) socket.write(more);
  }, everyMs);
  socket.on("close", () => clearInterval(timer));
}
