import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface PartnerRequest {
  path: string;
  headers: IncomingMessage["headers"];
  body: string;
}

/** A partner's server on loopback. */
export interface PartnerServer {
  port: number;
  url: string;
  received: PartnerRequest[];
  /** The number of opened connections. */
  connections: number;
  close(): Promise<void>;
}

/** A self-signed certificate of `hooks.test` and `localhost` until 2120, and its key. For tests only. */
export const SELF_SIGNED = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgt6hiUzCJwRUOKy4K
TRYiu+iYWhjs0Oil2KAF68QdTwChRANCAATKLChYxWzxLlZpOb5efQ+0vtnrsYl0
3Ftje5k74vtDqmx1LxeW2h+JlaSKfQL/PyYqWMqTvPdGyCzt3hVZz5YY
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBjzCCATagAwIBAgIBAjAKBggqhkjOPQQDAjAVMRMwEQYDVQQDDApob29rcy50
ZXN0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAyMDAwMDAwWjAVMRMwEQYDVQQD
DApob29rcy50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyiwoWMVs8S5W
aTm+Xn0PtL7Z67GJdNxbY3uZO+L7Q6psdS8XltofiZWkin0C/z8mKljKk7z3Rsgs
7d4VWc+WGKN1MHMwHQYDVR0OBBYEFGQZ37Ac2P2Z6JEPjMrm1YNSm8IGMB8GA1Ud
IwQYMBaAFGQZ37Ac2P2Z6JEPjMrm1YNSm8IGMA8GA1UdEwEB/wQFMAMBAf8wIAYD
VR0RBBkwF4IKaG9va3MudGVzdIIJbG9jYWxob3N0MAoGCCqGSM49BAMCA0cAMEQC
IGS1Anc66Dv6r8aQk9WCHJ8Odp8wqLEBVuzKViwjWZaxAiA0pRZqyzolAo/ePOn4
DZ6z6DovjMoB29b9NJcrTczNuA==
-----END CERTIFICATE-----`,
};

/** Starts a partner's server on loopback that records every request and answers it, by default with 204. */
export async function startPartnerServer({
  answer = (response: ServerResponse) => response.writeHead(204).end(),
  tls = false,
  host = "127.0.0.1",
  port = 0,
}: {
  answer?: (response: ServerResponse, request: PartnerRequest) => unknown;
  tls?: boolean;
  host?: string;
  port?: number;
} = {}): Promise<PartnerServer> {
  const onRequest: RequestListener = async (request, response) => {
    // A client that is killed in the middle of its request sends no end.
    const body = await text(request).catch(() => null);
    if (body === null) return;
    const got = { path: request.url ?? "", headers: request.headers, body };
    receiver.received.push(got);
    answer(response, got);
  };
  const server = tls ? createTlsServer(SELF_SIGNED, onRequest) : createServer(onRequest);
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  const opened = (server.address() as AddressInfo).port;
  const receiver: PartnerServer = {
    port: opened,
    url: `${tls ? "https" : "http"}://${host}:${opened}/hooks`,
    received: [],
    connections: 0,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  server.on("connection", () => {
    receiver.connections += 1;
  });
  return receiver;
}
