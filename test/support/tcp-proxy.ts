import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";

/** A proxy to a server whose connections a test can interrupt. */
export interface TcpProxy {
  /** The server's address with the proxy's host and port. */
  url: string;
  /** The number of accepted connections. */
  accepted(): number;
  /** Ends all connections and refuses new ones. */
  cut(): void;
  /** Stops all traffic and keeps the connections open. */
  jam(): void;
  /** Forwards requests but no answers. */
  muffle(): void;
  /** Permanently stops the current connections without closing them. New ones work. Returns their number. */
  lose(): number;
  /** Ends all connections and connects new ones to another server. */
  lead(target: string): void;
  /** Undoes all of the above except `lose` and `lead`. Delayed traffic continues. */
  mend(): void;
  close(): Promise<void>;
}

interface Wire {
  client: Socket;
  server: Socket;
  lost: boolean;
}

/** The rules for all connections. */
type State = "open" | "cut" | "jammed" | "muffled";

/** Connects a client to a server. When one side ends, the other side ends as well, and the proxy forgets both. */
function connectWire(client: Socket, to: URL, wires: Set<Wire>): Wire {
  const server = connect(Number(to.port), to.hostname);
  const wire = { client, server, lost: false };
  wires.add(wire);
  const end = () => {
    wires.delete(wire);
    client.destroy();
    server.destroy();
  };
  client.on("data", (bytes) => server.write(bytes));
  server.on("data", (bytes) => client.write(bytes));
  for (const socket of [client, server]) socket.on("close", end).on("error", end);
  return wire;
}

/** Stops or continues the traffic of each direction. */
function flow({ client, server, lost }: Wire, state: State): void {
  if (state === "jammed" || lost) client.pause();
  else client.resume();
  if (state === "jammed" || state === "muffled" || lost) server.pause();
  else server.resume();
}

/** Opens a proxy in front of the server at `target`, such as a `redis://` address. */
export async function openTcpProxy(target: string): Promise<TcpProxy> {
  let to = new URL(target);
  const wires = new Set<Wire>();
  let state: State = "open";
  let accepted = 0;
  const change = (next: State) => {
    state = next;
    for (const wire of wires) flow(wire, state);
  };
  const endAll = () => {
    for (const { client, server } of wires) for (const socket of [client, server]) socket.destroy();
  };
  const proxy: Server = createServer((client) => {
    accepted += 1;
    if (state === "cut") {
      client.destroy();
      return;
    }
    flow(connectWire(client, to, wires), state);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String((proxy.address() as AddressInfo).port);
  return {
    url: url.href,
    accepted: () => accepted,
    cut() {
      change("cut");
      endAll();
    },
    jam: () => change("jammed"),
    muffle: () => change("muffled"),
    lose() {
      for (const wire of wires) {
        wire.lost = true;
        flow(wire, state);
      }
      return wires.size;
    },
    lead(other) {
      to = new URL(other);
      change("open");
      endAll();
    },
    mend: () => change("open"),
    close() {
      endAll();
      return new Promise((resolve) => proxy.close(() => resolve()));
    },
  };
}
