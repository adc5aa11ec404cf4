import { connect } from "node:net";
import pg from "pg";
import { explainRefusal } from "../refused-connections.ts";
import { UnusableDatabase } from "./schema.ts";

/** Maximum wait for a connection. Milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Maximum wait for a second connection from a pooler, and for each of its answers. Milliseconds. */
const SECOND_MAX_MS = 2_000;

/** A server answered, but no connection to it is usable. The message has the server's words and the remedy. */
export class RefusedConnection extends UnusableDatabase {
  /** Whether a later attempt with the same address may succeed. */
  readonly mayPass: boolean;

  constructor(server: string, cause: Error) {
    const { sentence, mayPass } = explainRefusal(server, cause) ?? {
      sentence: `${server} cannot be used: ${cause.message}.`,
      mayPass: false,
    };
    super("unavailable", sentence, { cause });
    this.name = "RefusedConnection";
    this.mayPass = mayPass;
  }
}

/** Messages of pg when a connection could not be opened, was lost, or did not answer. */
const NO_ANSWER = [
  "timeout exceeded when trying to connect",
  "timeout expired",
  "Query read timeout",
  "Connection terminated",
  "Client has encountered a connection error",
];

/** Whether no server answered, or the connection was lost. */
export function isNoAnswer(error: Error & { code?: unknown }): boolean {
  if (error instanceof pg.DatabaseError) return false;
  if (/^E(CONN|PIPE|HOST|NET|NOTFOUND|TIMEDOUT|AI_)/.test(String(error.code))) return true;
  return NO_ANSWER.some((message) => error.message.includes(message));
}

/**
 * A client that connects, or fails with {@link RefusedConnection} if a server answered. No error before the first
 * statement can be a fault of the program.
 */
export class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    // When the connection is lost, pg rejects all pending calls and emits an event. An event without a listener would
    // end the process. It may arrive while the client still connects, before a pool listens.
    this.on("error", () => undefined);
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    const connected = super.connect().catch((error: Error) => {
      throw this.#explain(error);
    });
    if (callback === undefined) return connected;
    connected.then(() => callback(undefined as never), callback);
  }

  #explain(error: Error): Error {
    return isNoAnswer(error) ? error : new RefusedConnection(`Postgres at ${this.host}:${this.port}`, error);
  }
}

/** The problem with a Postgres address, such as a certificate file that cannot be read. Null if there is none. */
export function findAddressProblem(databaseUrl: string): string | null {
  try {
    return new pg.Client({ connectionString: databaseUrl }) && null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Connects a client outside any pool. Its session is not prepared yet. */
export async function connectClient(databaseUrl: string, applicationName: string): Promise<pg.Client> {
  const own = { application_name: applicationName, connectionTimeoutMillis: CONNECT_TIMEOUT_MS };
  const client = new Client({ connectionString: databaseUrl, ...own });
  await client.connect();
  return client;
}

/** Makes a second client, which `session.ts` uses to detect a pooler that does not keep sessions. */
export function secondClient(databaseUrl: string): pg.Client {
  const limits = { connectionTimeoutMillis: SECOND_MAX_MS, query_timeout: SECOND_MAX_MS };
  return new Client({ connectionString: databaseUrl, ...limits });
}

/** The start of the message that cancels a session's statement: length and code. The session's id and key follow. */
const CANCEL_REQUEST = [16, 80_877_102];

/**
 * Cancels the statement that the server is running for a client, if any, on a separate connection. Poolers pass the
 * request on. Resolves when the server has handled the request or cannot be reached.
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
