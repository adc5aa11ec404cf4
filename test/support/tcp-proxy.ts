import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";

/** A wire to a server that a test can cut and jam. */
export interface TcpProxy {
  /** The given address with this proxy's port in it. */
  url: string;
  /** Ends all connections and refuses new ones. */
  cut(): void;
  /** Passes nothing on any more, without ending anything. */
  jam(): void;
  /** Passes requests on and keeps the answers back. */
  muffle(): void;
  /** Loses the connections that there are: they stay open at both ends and pass nothing on, ever. New ones work. Returns how many. */
  lose(): number;
  /** Undoes all of these but losses; what was kept back goes on its way. */
  mend(): void;
  close(): Promise<void>;
}

interface Wire {
  client: Socket;
  server: Socket;
  lost: boolean;
}

/** Opens a proxy in front of the server at `target`, such as a `redis://` address. */
export async function openTcpProxy(target: string): Promise<TcpProxy> {
  const to = new URL(target);
  const wires = new Set<Wire>();
  let refusing = false;
  let jammed = false;
  let muffled = false;

  const flow = ({ client, server, lost }: Wire) => {
    if (jammed || lost) client.pause();
    else client.resume();
    if (jammed || muffled || lost) server.pause();
    else server.resume();
  };
  const proxy: Server = createServer((client) => {
    if (refusing) {
      client.destroy();
      return;
    }
    const wire = { client, server: connect(Number(to.port), to.hostname), lost: false };
    wires.add(wire);
    const end = () => {
      wires.delete(wire);
      wire.client.destroy();
      wire.server.destroy();
    };
    wire.client.on("data", (bytes) => wire.server.write(bytes));
    wire.server.on("data", (bytes) => wire.client.write(bytes));
    for (const socket of [wire.client, wire.server]) socket.on("close", end).on("error", end);
    flow(wire);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String((proxy.address() as AddressInfo).port);

  const change = (state: { refusing?: boolean; jammed?: boolean; muffled?: boolean }) => {
    refusing = state.refusing ?? false;
    jammed = state.jammed ?? false;
    muffled = state.muffled ?? false;
    for (const wire of wires) flow(wire);
  };
  const endAll = () => {
    for (const { client, server } of wires) {
      client.destroy();
      server.destroy();
    }
  };
  return {
    url: url.href,
    cut() {
      change({ refusing: true });
      endAll();
    },
    jam: () => change({ jammed: true }),
    muffle: () => change({ muffled: true }),
    lose() {
      for (const wire of wires) {
        wire.lost = true;
        flow(wire);
      }
      return wires.size;
    },
    mend: () => change({}),
    close() {
      endAll();
      return new Promise((resolve) => proxy.close(() => resolve()));
    },
  };
}
