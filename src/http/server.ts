import { createServer, type RequestListener, type ServerResponse, STATUS_CODES } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { AppError, type ErrorCode } from "../domain/errors.ts";
import { statusOf } from "./error-map.ts";

/** Time for a whole request to arrive; bodies have 16 KiB at most. Milliseconds. */
const REQUEST_TIMEOUT_MS = 15_000;
/** Time for a request's headers to arrive. Milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000;
/** How long an idle connection stays open: longer than the 60 s of common load balancers. Milliseconds. */
const KEEP_ALIVE_MS = 65_000;

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
): Promise<HttpServer> {
  const server = createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node's own refusal has no body; nothing here depends on the Host.
    requireHostHeader: false,
  });
  const underWay = new Set<ServerResponse>();
  let closing = false;
  const serve: RequestListener = (request, response) => {
    request.url = readableTarget(request.url ?? "/");
    underWay.add(response);
    if (closing) response.setHeader("Connection", "close");
    response.once("close", () => underWay.delete(response));
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
      return new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
      });
    },
  };
}

/**
 * A request's target as a path that every router can read (RFC 9112, section 3.2): the path of an address in absolute form, and
 * what cannot be decoded taken literally, so that it is an unknown code or path like any other.
 */
function readableTarget(target: string): string {
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
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const refusal = BROKEN[error.code ?? ""] ?? NOT_HTTP;
  const status = statusOf(refusal.code);
  const requestId = crypto.randomUUID();
  const body = JSON.stringify({ error: refusal.message, code: refusal.code, requestId });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "Content-Type: application/json; charset=utf-8",
    `X-Request-Id: ${requestId}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
  ];
  socket.end([...head, "", body].join("\r\n"));
  log.info({ requestId, status, errorCode: refusal.code }, "request");
  onRefusal(refusal.code);
}
