import { connect } from "node:net";
import pg from "pg";

/** Longest wait for a connection. Milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Longest wait for a second connection from a pooler, and for its answers. Milliseconds. */
const SECOND_MAX_MS = 2_000;

/** Connects a client outside of any pool. Its session is not prepared yet. */
export async function connectClient(databaseUrl: string, applicationName: string): Promise<pg.Client> {
  const own = { application_name: applicationName, connectionTimeoutMillis: CONNECT_TIMEOUT_MS };
  const client = new pg.Client({ connectionString: databaseUrl, ...own });
  // Ignored, because a pending query also rejects when the connection is lost.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** Makes another client, by which `session.ts` recognizes a pooler that does not keep sessions. */
export function secondClient(databaseUrl: string): pg.Client {
  const limits = { connectionTimeoutMillis: SECOND_MAX_MS, query_timeout: SECOND_MAX_MS };
  const client = new pg.Client({ connectionString: databaseUrl, ...limits });
  client.on("error", () => undefined);
  return client;
}

/** The request of the protocol that cancels what a session does: its length, its code, the session's id and key. */
const CANCEL_REQUEST = [16, 80_877_102];

/**
 * Cancels what the server does for a client, if it still does it. Needs no free connection, and a pooler passes it on.
 * Resolves when the server has done so, or cannot be reached.
 */
export function cancel(client: pg.ClientBase): Promise<void> {
  const { host, port, processID, secretKey } = client as unknown as Record<"host", string> &
    Record<"port" | "processID" | "secretKey", number>;
  const socket = connect(host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port });
  const request = Buffer.from(Int32Array.of(...CANCEL_REQUEST, processID, secretKey).buffer).swap32();
  socket.setTimeout(SECOND_MAX_MS, () => socket.destroy());
  socket.on("error", () => undefined).end(request);
  return new Promise((resolve) => socket.resume().on("close", () => resolve()));
}
