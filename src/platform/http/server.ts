import { createServer, type RequestListener, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import { type AddressInfo, type Socket, Server as TcpServer } from "node:net";
import type { Duplex } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import { AppError } from "../api/errors.ts";
import type { Config } from "../config.ts";
import type { Closable } from "../lifetime.ts";

/** Limits on the number of clients and on slow clients. Durations are in milliseconds. */
export const CONNECTION_LIMITS = {
  /** Maximum time for a request's headers, from the start of the connection or the end of the previous request. */
  headersMs: 10_000,
  /** Maximum time for a whole request to arrive. Bodies have at most 16 KiB, or 8 MiB with a file. */
  requestMs: 15_000,
  /** Maximum time without a byte during a request. Above the largest REDEEM_WAIT_MS (60 s) and two reads of 12 s. */
  stalledMs: 95_000,
  /** Interval between checks for late headers and requests. */
  checkEveryMs: 1_000,
  /** Maximum number of concurrent connections. Further ones are closed. At most 45 KiB each, 450 MB in total. */
  connectionsMax: 10_000,
  /**
   * Maximum number of connections that wait in the kernel to be accepted. With Node's default of 511, further
   * connections would be retried only after a second.
   */
  backlog: 4_096,
  // Node handles all requests in a chunk of data at once, perhaps a thousand, and keeps responses that the client does
  // not read.
  /**
   * Maximum number of concurrent requests on one connection. The server closes a connection that has more. Few clients
   * send a request before they have the previous response.
   */
  pipelinedMax: 32,
  /** How long an idle connection of a closing server stays open, because a request may be on its way. Milliseconds. */
  closingIdleMs: 2_000,
};

export type ConnectionLimits = typeof CONNECTION_LIMITS;

/** How long a client may read the response to a malformed request before its connection is closed. Milliseconds. */
const LINGER_MS = 1_000;

/** Maximum time for which a stopping server still accepts new connections. Milliseconds. */
const ACCEPT_MS = 1_000;

/** Minimum interval between two log lines about refused connections. Milliseconds. */
const LOG_FULL_EVERY_MS = 30_000;

/** A listening HTTP server. */
export interface HttpServer extends Closable {
  port: number;
  /**
   * Accepts the connections that wait, then stops listening. On each connection, one last request may be answered.
   * Resolves when all connections are closed.
   */
  close(): Promise<void>;
}

/** The connections and requests of a server, to limit and close them. */
class OpenConnections {
  /** For each open connection, the last time when it became idle, in milliseconds of `performance.now()`. */
  readonly idleSince = new Map<Duplex, number>();
  readonly inProgress = new Set<ServerResponse>();
  readonly inProgressOn = new WeakMap<Duplex, number>();
  accepted = 0;
  closing = false;

  add(socket: Socket): void {
    this.accepted += 1;
    this.idleSince.set(socket, performance.now());
    socket.once("close", () => this.idleSince.delete(socket));
  }

  begin(socket: Socket, response: ServerResponse): void {
    this.inProgressOn.set(socket, (this.inProgressOn.get(socket) ?? 0) + 1);
    this.inProgress.add(response);
    if (this.closing) response.setHeader("Connection", "close");
    response.once("close", () => {
      this.inProgress.delete(response);
      this.inProgressOn.set(socket, (this.inProgressOn.get(socket) ?? 1) - 1);
      if (this.idleSince.has(socket)) this.idleSince.set(socket, performance.now());
    });
  }

  /** Destroys the connections that have been idle for `idleMs`. The time counts from `closingSince` at the earliest. */
  endIdle(closingSince: number, idleMs: number): void {
    const before = performance.now() - idleMs;
    for (const [socket, since] of this.idleSince) {
      if (!this.inProgressOn.get(socket) && Math.max(since, closingSince) <= before) socket.destroy();
    }
  }
}

/**
 * Serves `app`, with limits on slow clients. An idle connection is kept for `keepAliveMs`, which its responses
 * announce. `onRefusal` gets the error code of each request that is too malformed to reach `app`.
 */
export async function listen(
  app: RequestListener,
  {
    port,
    host = null,
    keepAliveMs,
    headersMax,
  }: Pick<Config, "port" | "keepAliveMs"> & Partial<Pick<Config, "host" | "headersMax">>,
  log: Logger,
  onRefusal: (code: string) => void = () => undefined,
  limits = CONNECTION_LIMITS,
): Promise<HttpServer> {
  const server = createServer({
    requestTimeout: limits.requestMs,
    headersTimeout: limits.headersMs,
    keepAliveTimeout: keepAliveMs,
    ...(headersMax !== undefined && { maxHeaderSize: headersMax }),
    connectionsCheckingInterval: limits.checkEveryMs,
    // The application checks for Host itself, because Node's own response would have no body.
    requireHostHeader: false,
  });
  server.timeout = limits.stalledMs;
  server.maxConnections = limits.connectionsMax;
  server.on("drop", logFull(limits, log));
  const open = new OpenConnections();
  server.on("connection", (socket: Socket) => open.add(socket));
  const serve: RequestListener = (request, response) => {
    const { socket } = request;
    // Skips the request: an earlier one of the same chunk exceeded the limit, so the connection was closed.
    if (socket.destroyed) return;
    if ((open.inProgressOn.get(socket) ?? 0) >= limits.pipelinedMax) {
      log.info({ pipelinedMax: limits.pipelinedMax }, "a connection with too many concurrent requests was closed");
      return void socket.destroy();
    }
    request.url = toPath(request.url ?? "/");
    open.begin(socket, response);
    app(request, response);
  };
  server.on("request", serve);
  // Serves these requests as usual: a server may ignore an expectation other than 100-continue (RFC 9110, 10.1.1).
  server.on("checkExpectation", serve);
  server.on("clientError", (error, socket) => refuseMalformedRequest(log, onRefusal, error, socket));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new Error(`cannot listen on PORT ${port}: ${error.message}`, { cause: error })),
    );
    server.listen({ port, ...(host !== null && { host }), backlog: limits.backlog }, resolve);
  });
  return { port: (server.address() as AddressInfo).port, close: () => closeServer(server, open, limits) };
}

/** Logs refused connections, at most once per LOG_FULL_EVERY_MS. */
function logFull({ connectionsMax }: ConnectionLimits, log: Logger): () => void {
  let logFullAt = 0;
  return () => {
    if (performance.now() < logFullAt) return;
    logFullAt = performance.now() + LOG_FULL_EVERY_MS;
    log.warn({ connectionsMax }, "the server refuses connections: it has reached its limit");
  };
}

async function closeServer(server: Server, open: OpenConnections, limits: ConnectionLimits): Promise<void> {
  open.closing = true;
  // This header tells clients not to reuse their connections. Without it, the server would never close.
  for (const response of open.inProgress) if (!response.headersSent) response.setHeader("Connection", "close");
  const closingSince = performance.now();
  const endIdle = () => open.endIdle(closingSince, limits.closingIdleMs);
  // Ends idle connections repeatedly, because a connection whose response began without `Connection: close` becomes
  // idle later. In a delayed process, timers run before pending requests are read, so `setImmediate` waits until they
  // are read.
  const timer = setInterval(() => setImmediate(endIdle), limits.closingIdleMs / 10);
  await untilNoConnectionWaits(() => open.accepted);
  await new Promise<void>((resolve, reject) => {
    // Uses the close() of the TCP server, because that of the HTTP server would end idle connections at once and reset
    // requests that are on their way.
    TcpServer.prototype.close.call(server, (error) => {
      clearInterval(timer);
      if (error) reject(error);
      else resolve();
    });
  });
}

/**
 * Resolves when no connection waits to be accepted, or after {@link ACCEPT_MS}. Without this, the kernel would reset
 * connections that wait. One connection is accepted per turn of the event loop.
 */
async function untilNoConnectionWaits(accepted: () => number): Promise<void> {
  const giveUpAt = performance.now() + ACCEPT_MS;
  let before: number;
  do {
    before = accepted();
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
  } while (accepted() > before && performance.now() < giveUpAt);
}

/** Converts a request target to a path (RFC 9112, section 3.2). A path that cannot be decoded is taken literally. */
function toPath(target: string): string {
  if (/^\/(?!\/)[^%]*$/.test(target)) return target;
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? "";
  const path = target.slice(origin.length);
  const rooted = path.replace(/^\/*/, "/");
  const [pathname = "/", ...query] = rooted.split("?");
  return [isDecodable(pathname) ? pathname : pathname.replaceAll("%", "%25"), ...query].join("?");
}

function isDecodable(pathname: string): boolean {
  try {
    decodeURIComponent(pathname);
    return true;
  } catch {
    return false;
  }
}

const PARSER_ERRORS: Record<string, AppError> = {
  HPE_HEADER_OVERFLOW: new AppError("headers_too_large"),
  ERR_HTTP_REQUEST_TIMEOUT: new AppError("request_timeout"),
};
const NOT_HTTP = new AppError("invalid_http");

/** Sends and logs an error response for a request that is too malformed to reach the application. */
function refuseMalformedRequest(
  log: Logger,
  onRefusal: (code: string) => void,
  error: NodeJS.ErrnoException,
  socket: Duplex,
): void {
  // Sends nothing after another response has begun, because the client would take the second for a part of the first.
  const responding = (socket as { _httpMessage?: ServerResponse | null })._httpMessage?.headersSent;
  if (error.code === "ECONNRESET" || !socket.writable || responding) return void socket.destroy();
  const refusal = PARSER_ERRORS[error.code ?? ""] ?? NOT_HTTP;
  const { status } = refusal;
  const requestId = crypto.randomUUID();
  const body = `${JSON.stringify({ error: refusal.message, code: refusal.code, requestId })}\n`;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "Content-Type: application/json; charset=utf-8",
    "Content-Language: en",
    "Cache-Control: no-store",
    `X-Request-Id: ${requestId}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  socket.end([...head, "", body].join("\r\n"));
  // Closes the connection only after some time. If the client is still sending, closing at once would lose the
  // response.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
  log.info({ requestId, status, errorCode: refusal.code }, "request");
  onRefusal(refusal.code);
}
