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
