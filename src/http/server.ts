import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";

/** Time for a whole request to arrive; bodies have 16 KiB at most. Milliseconds. */
const REQUEST_TIMEOUT_MS = 15_000;
/** Time for a request's headers to arrive. Milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000;
/** How long an idle connection stays open: longer than the 60 s of common load balancers. Milliseconds. */
const KEEP_ALIVE_MS = 65_000;

/** Serves `app` on a port, with limits on how slow a client may be. Resolves when connections are accepted. */
export function listen(app: RequestListener, port: number): Promise<Server> {
  const server = createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node's own refusal has no body; nothing here depends on the Host.
    requireHostHeader: false,
  });
  const serve: RequestListener = (request, response) => {
    request.url = readableTarget(request.url ?? "/");
    app(request, response);
  };
  server.on("request", serve);
  // An expectation other than 100-continue may be ignored (RFC 9110, section 10.1.1).
  server.on("checkExpectation", serve);
  server.on("clientError", refuseBrokenRequest);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, () => resolve(server));
  });
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

/** Stops accepting and resolves when every request under way has its answer. Idle connections are closed at once. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()));
  });
}

const STATUS_LINE: Record<string, [status: string, sentence: string, code: string]> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "The request's address or headers are too long.",
    "headers_too_large",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "The request did not arrive in time.", "request_timeout"],
};

/** Answers what is not HTTP enough to reach the application, in the same form as every other refusal. */
function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const [status, sentence, code] = STATUS_LINE[error.code ?? ""] ?? [
    "400 Bad Request",
    "This is not an HTTP request.",
    "invalid_http",
  ];
  const requestId = crypto.randomUUID();
  const body = JSON.stringify({ error: sentence, code, requestId });
  const head = [`HTTP/1.1 ${status}`, "Content-Type: application/json; charset=utf-8", `X-Request-Id: ${requestId}`];
  socket.end([...head, `Content-Length: ${Buffer.byteLength(body)}`, "Connection: close", "", body].join("\r\n"));
}
