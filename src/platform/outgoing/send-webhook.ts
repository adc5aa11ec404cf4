import { lookup, Resolver } from "node:dns/promises";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { Agent, buildConnector, errors, request } from "undici";
import { isPublicAddress } from "../addresses.ts";
import { findUrlProblem, hostOf } from "./webhook-url.ts";

const USER_AGENT = "Partner-Voucher-API-Webhooks";

/** Maximum time until the connection is open, including TLS. Milliseconds. */
const CONNECT_MAX_MS = 5_000;
/** Maximum time of an attempt, even if the receiver keeps sending. Milliseconds. */
export const ATTEMPT_MAX_MS = 15_000;
/** How long running attempts may continue after the sender begins to close. Milliseconds. */
const CLOSE_MAX_MS = 3_000;
/** Maximum number of bytes to read of a response's body. The body is not used. */
const BODY_MAX = 16 * 1_024;
/** Maximum number of bytes in a response's headers. A response with more fails. */
const HEADERS_MAX = 16 * 1_024;
/** Maximum number of bytes, of any kind, to read from a connection for one request. A response with more fails. */
const RECEIVED_MAX = 256 * 1_024;
/** How long an idle connection is kept. Milliseconds. */
const KEPT_MS = 2_000;
/** Maximum number of a host name's addresses that are tried for one connection. */
const ADDRESSES_MAX = 4;
/** How long one address is tried before the next. Milliseconds. */
const ADDRESS_MAX_MS = 1_000;

/** The result of one request. */
export type WebhookResult =
  /** A response with a status from 200 to 299. */
  | { status: number; failure: null; retryAfterMs: null }
  /** Any other response. */
  | { status: number; failure: "status" | "redirect"; retryAfterMs: number | null }
  | { status: null; failure: NoResponse; retryAfterMs: null };

type NoResponse = "timeout" | "refused_address" | "unknown_host" | "connection" | "tls" | "invalid_response";

interface WebhookRequest {
  url: string;
  /** The headers with the signature. */
  headers: Readonly<Record<string, string>>;
  /** The exact text that was signed. */
  body: string;
}

/** How requests leave this process. */
interface SenderOptions {
  /** The setting WEBHOOK_ALLOW_PRIVATE. */
  allowPrivate: boolean;
  resolve?: (host: string) => Promise<string[]>;
  mayConnectTo?: (address: string) => boolean;
  connectMaxMs?: number;
  attemptMaxMs?: number;
  /** Certificates of the authorities to trust in place of the usual ones. */
  ca?: string;
  /** Ends running attempts when it aborts. */
  endRuns?: AbortSignal;
}

/** Opens the agent of {@link sendWebhook}. It keeps connections, and checks each new connection's address. */
export function openWebhookSender(options: SenderOptions) {
  const { allowPrivate, ca, endRuns } = options;
  const resolve = options.resolve ?? (allowPrivate ? resolveLocally : resolveByDns);
  const mayConnectTo = options.mayConnectTo ?? (allowPrivate ? () => true : isPublicAddress);
  const connect = buildConnector({
    allowH2: false,
    timeout: options.connectMaxMs ?? CONNECT_MAX_MS,
    // Called once per connection. The connection then uses one of the returned addresses.
    lookup: lookupOf(resolve, mayConnectTo),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_MAX_MS,
    ...(ca !== undefined && { ca }),
  });
  const agent = new Agent({
    maxHeaderSize: HEADERS_MAX,
    keepAliveTimeout: KEPT_MS,
    keepAliveMaxTimeout: KEPT_MS,
    // There is no separate limit for headers, because one limit covers the whole attempt.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (to, callback) =>
      connect(to, (error, socket) => {
        if (error === null) callback(null, boundReceived(socket as Socket));
        else callback(new SendFailure(failureOfConnecting(error, to.protocol)), null);
      }),
  });
  const closing = new AbortController();
  const closed = new AbortController();
  return {
    allowPrivate,
    mayConnectTo,
    agent,
    attemptMaxMs: options.attemptMaxMs ?? ATTEMPT_MAX_MS,
    /** Aborts when no further attempt may begin. */
    closing: closing.signal,
    /** Aborts when running attempts must end. */
    closed: AbortSignal.any([closed.signal, ...(endRuns === undefined ? [] : [endRuns])]),
    /** Begins no further attempt. Aborts running attempts after a short while. Resolves when all have ended. */
    async close() {
      closing.abort();
      const timer = setTimeout(() => {
        closed.abort();
        void agent.destroy();
      }, CLOSE_MAX_MS);
      await agent.close().finally(() => clearTimeout(timer));
    },
  };
}

export type WebhookSender = ReturnType<typeof openWebhookSender>;

/**
 * Destroys a connection that receives too much data for one request. The HTTP parser limits neither interim responses
 * nor chunk extensions.
 */
function boundReceived(socket: Socket): Socket {
  const { read, write } = socket;
  let received = 0;
  return Object.assign(socket, {
    // A write means that a new request begins, so the count starts again.
    write(...args: Parameters<typeof write>) {
      received = 0;
      return write.apply(socket, args);
    },
    read(size?: number) {
      const chunk = read.call(socket, size);
      received += chunk?.length ?? 0;
      if (received <= RECEIVED_MAX) return chunk;
      socket.destroy(new SendFailure("invalid_response"));
      return null;
    },
  });
}

function failureOfConnecting(error: Error & { syscall?: string; code?: string }, protocol: string): NoResponse {
  if (error instanceof SendFailure) return error.failure;
  if (error instanceof errors.ConnectTimeoutError) return "timeout";
  const isConnected = error.syscall !== "connect" && !(error instanceof AggregateError);
  return protocol === "https:" && isConnected ? "tls" : "connection";
}

/** Resolves a name. Includes names in the hosts file and names of other containers. */
async function resolveLocally(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

/** Resolves a name without libuv's thread pool, which has only four threads. A name server may be slow. */
async function resolveByDns(host: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  const found = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  return found.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
}

function lookupOf(
  resolve: (host: string) => Promise<string[]>,
  mayConnectTo: (address: string) => boolean,
): LookupFunction {
  return (host, _options, callback) => {
    resolve(host).then(
      (addresses) => {
        if (addresses.length === 0) return callback(new SendFailure("unknown_host"), []);
        const usable = addresses.filter(mayConnectTo);
        if (usable.length === 0) return callback(new SendFailure("refused_address"), []);
        return callback(null, alternate(usable).slice(0, ADDRESSES_MAX));
      },
      () => callback(new SendFailure("unknown_host"), []),
    );
  };
}

/** Alternates the families of addresses, because a host may be able to reach only one family. */
function alternate(addresses: readonly string[]): { address: string; family: number }[] {
  const families = Map.groupBy(addresses, isIP);
  return [...families]
    .flatMap(([family, members]) => members.map((address, rank) => ({ address, family, rank })))
    .toSorted((a, b) => a.rank - b.rank);
}

/** A request was not sent, or got no complete response. {@link sendWebhook} catches this error. */
class SendFailure extends Error {
  readonly failure: NoResponse;

  constructor(failure: NoResponse) {
    super(failure);
    this.failure = failure;
  }
}

/**
 * Sends one signed request and reads its response. Follows no redirects and sends no credentials. The address is
 * checked whenever a connection is opened. Always ends within the limit of an attempt. Returns null if the sender
 * closes first. Does not throw when the receiving server fails.
 */
export async function sendWebhook(
  { webhookSender }: { webhookSender: WebhookSender },
  { url, headers, body }: WebhookRequest,
): Promise<WebhookResult | null> {
  const { allowPrivate, mayConnectTo, agent, attemptMaxMs, closing, closed } = webhookSender;
  if (closing.aborted) return null;
  const to = URL.parse(url);
  // Checks the URL again, because `allowPrivate` may have changed since the endpoint was created. An IP address is
  // checked here, because it is not resolved.
  const isRefused = to === null || findUrlProblem(url, allowPrivate) !== null;
  if (isRefused || (isIP(hostOf(to)) !== 0 && !mayConnectTo(hostOf(to)))) return noResponse("refused_address");
  const limit = AbortSignal.timeout(attemptMaxMs);
  try {
    const response = await request(to, {
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": USER_AGENT, ...headers },
      body,
      dispatcher: agent,
      signal: AbortSignal.any([limit, closed]),
    });
    let bytes = 0;
    for await (const chunk of response.body) {
      bytes += chunk.length;
      if (bytes >= BODY_MAX) break;
    }
    return resultOf(response.statusCode, response.headers);
  } catch (error) {
    if (closed.aborted) return null;
    return noResponse(limit.aborted ? "timeout" : failureOf(error as Error));
  }
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

function noResponse(failure: NoResponse): WebhookResult {
  return { status: null, failure, retryAfterMs: null };
}

function failureOf(error: Error): NoResponse {
  if (error instanceof SendFailure) return error.failure;
  const isInvalid = error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError;
  return isInvalid || /^bad (response|upgrade)$/.test(error.message) ? "invalid_response" : "connection";
}

function resultOf(status: number, headers: Headers): WebhookResult {
  if (status >= 200 && status < 300) return { status, failure: null, retryAfterMs: null };
  const failure = status >= 300 && status < 400 ? "redirect" : "status";
  return { status, failure, retryAfterMs: parseRetryAfter(headers) };
}

/**
 * The wait that `Retry-After` asks for: a number of seconds, or a date, compared with the date of the response (RFC
 * 9110, section 10.2.3). Null without a valid value.
 */
function parseRetryAfter({ "retry-after": after, date }: Headers): number | null {
  const text = String(after);
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const waitMs = / GMT$/.test(text) ? Date.parse(text) - Date.parse(String(date)) : Number.NaN;
  return Number.isNaN(waitMs) ? null : Math.max(0, waitMs);
}
