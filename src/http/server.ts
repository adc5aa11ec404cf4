import { createServer, type RequestListener, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { AppError, type ErrorCode } from "../domain/errors.ts";
import { statusOf } from "./error-map.ts";

/** How slow and how many clients may be. Durations are milliseconds. */
export interface ConnectionLimits {
  /** For a request's headers to arrive, from the connection or the end of the request before. */
  headersMs: number;
  /** For a whole request to arrive. */
  requestMs: number;
  /** How long a connection stays open between requests. */
  idleMs: number;
  /** How long nothing may move on a connection whose request is under way: neither a byte of the answer taken nor one sent. */
  stalledMs: number;
  /** How often headers and requests are looked at for being late. */
  checkEveryMs: number;
  /** Connections at once; one more is closed. */
  connectionsMax: number;
  /** Requests under way at once on a connection; with one more it is closed. */
  pipelinedMax: number;
}

const LIMITS: ConnectionLimits = {
  headersMs: 10_000,
  // Bodies have 16 KiB at most.
  requestMs: 15_000,
  // Longer than the 60 s of common load balancers.
  idleMs: 65_000,
  // Longer than the longest REDEEM_WAIT_MS, which is 60 s, with two reads of 12 s at most.
  stalledMs: 95_000,
  checkEveryMs: 1_000,
  // An idle connection takes 12 KiB of memory and one with an unfinished request 45 KiB: 450 MB at the worst.
  connectionsMax: 10_000,
  // Few clients send a request before they have the answer to the last. Node reads all that comes in one piece of 64 KiB, which
  // is a thousand requests, and keeps their answers for who does not take them.
  pipelinedMax: 32,
};

/** Who was told that their request is broken may read that for this long. Milliseconds. */
const LINGER_MS = 1_000;

/** Who is connected when the server closes and has not asked yet may still do so for this long. Milliseconds. */
const ASK_BY_MS = 2_000;

/** A full server says so once in this time, however many it turns away. Milliseconds. */
const SAY_FULL_EVERY_MS = 30_000;

/** A listening HTTP server. */
export interface HttpServer {
  port: number;
  /** Stops accepting, and resolves when every request that was accepted has its answer. */
  close(): Promise<void>;
}

/**
 * Serves `app` on a port, with limits on how slow a client may be. Resolves when connections are accepted.
 * @param onRefusal is told the error code of what never reached `app` because it was not HTTP enough.
 */
export async function listen(
  app: RequestListener,
  port: number,
  log: Logger,
  onRefusal: (code: ErrorCode) => void = () => undefined,
  limits: ConnectionLimits = LIMITS,
): Promise<HttpServer> {
  const server = createServer({
    requestTimeout: limits.requestMs,
    headersTimeout: limits.headersMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: limits.checkEveryMs,
    // Node's own refusal has no body; nothing here depends on the Host.
    requireHostHeader: false,
  });
  server.timeout = limits.stalledMs;
  server.maxConnections = limits.connectionsMax;
  let sayFullAt = 0;
  server.on("drop", () => {
    if (performance.now() < sayFullAt) return;
    sayFullAt = performance.now() + SAY_FULL_EVERY_MS;
    log.warn({ connectionsMax: limits.connectionsMax }, "there are as many connections as there may be");
  });
  const connections = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  });
  const underWay = new Set<ServerResponse>();
  let closing = false;
  const underWayOn = new WeakMap<Duplex, number>();
  const serve: RequestListener = (request, response) => {
    const { socket } = request;
    // What came in one piece with the request that was too many.
    if (socket.destroyed) return;
    const pipelined = (underWayOn.get(socket) ?? 0) + 1;
    if (pipelined > limits.pipelinedMax) {
      log.info({ pipelinedMax: limits.pipelinedMax }, "a connection with too many requests at once was closed");
      return void socket.destroy();
    }
    underWayOn.set(socket, pipelined);
    request.url = readableTarget(request.url ?? "/");
    underWay.add(response);
    if (closing) response.setHeader("Connection", "close");
    response.once("close", () => {
      underWay.delete(response);
      underWayOn.set(socket, (underWayOn.get(socket) ?? 1) - 1);
    });
    app(request, response);
  };
  server.on("request", serve);
  // An expectation other than 100-continue may be ignored (RFC 9110, section 10.1.1).
  server.on("checkExpectation", serve);
  server.on("clientError", (error, socket) => refuseBrokenRequest(log, onRefusal, error, socket));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new Error(`cannot listen on PORT ${port}: ${error.message}`, { cause: error })),
    );
    server.listen(port, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      closing = true;
      // Their clients would go on sending on these connections, and the server would never be done.
      for (const response of underWay) if (!response.headersSent) response.setHeader("Connection", "close");
      // The server spares connections that have not asked yet, and would wait for them for ever.
      const silence = setTimeout(() => {
        for (const socket of connections) if (!underWayOn.get(socket)) socket.destroy();
      }, ASK_BY_MS);
      return new Promise((resolve, reject) => {
        server.close((error) => {
          clearTimeout(silence);
          if (error) reject(error);
          else resolve();
        });
      });
    },
  };
}

/**
 * A request's target as a path that every router can read (RFC 9112, section 3.2): the path of an address in absolute form, and
 * what cannot be decoded taken literally, so that it is an unknown code or path like any other.
 */
function readableTarget(target: string): string {
  if (target.startsWith("/") && !target.includes("%")) return target;
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0] ?? "";
  const path = target.slice(origin.length);
  const rooted = path.startsWith("/") ? path : `/${path}`;
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

const BROKEN: Record<string, AppError> = {
  HPE_HEADER_OVERFLOW: new AppError("headers_too_large", "The request's address or headers are too long."),
  ERR_HTTP_REQUEST_TIMEOUT: new AppError("request_timeout", "The request did not arrive in time."),
};
const NOT_HTTP = new AppError("invalid_http", "This is not an HTTP request.");

/** Answers what is not HTTP enough to reach the application, in the same form as every other refusal, and logs it as one. */
function refuseBrokenRequest(
  log: Logger,
  onRefusal: (code: ErrorCode) => void,
  error: NodeJS.ErrnoException,
  socket: Duplex,
): void {
  // Behind the beginning of another answer, a refusal would be a part of it.
  const answering = (socket as { _httpMessage?: ServerResponse | null })._httpMessage?.headersSent;
  if (error.code === "ECONNRESET" || !socket.writable || answering) return void socket.destroy();
  const refusal = BROKEN[error.code ?? ""] ?? NOT_HTTP;
  const status = statusOf(refusal.code);
  const requestId = crypto.randomUUID();
  const body = JSON.stringify({ error: refusal.message, code: refusal.code, requestId });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "Content-Type: application/json; charset=utf-8",
    "Cache-Control: no-store",
    `X-Request-Id: ${requestId}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  socket.end([...head, "", body].join("\r\n"));
  // Closed at once, what the client still sends would take the refusal from it; left to the client, it might never be closed.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
  log.info({ requestId, status, errorCode: refusal.code }, "request");
  onRefusal(refusal.code);
}
