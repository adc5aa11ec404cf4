import { lookup, Resolver } from "node:dns/promises";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Duplex } from "node:stream";
import type { DeliveryFailure } from "../../contract/webhooks.ts";
import { findUrlProblem, hostOf, isPublicAddress } from "../../domain/webhook-url.ts";

const USER_AGENT = "Partner-Voucher-API-Webhooks";

/** Longest time until the connection is open, including TLS. Milliseconds. */
const CONNECT_MAX_MS = 5_000;
/** Longest time until the response is complete. Milliseconds. */
const RESPONSE_MAX_MS = 15_000;
/** Most bytes of a response's body that are read. The body is not used. */
const BODY_MAX = 16 * 1_024;
/** Most bytes of a response's headers. A response with more fails. */
const HEADERS_MAX = 16 * 1_024;
/** Hosts whose idle connections are kept, for http and for https each. */
const KEPT_HOSTS_MAX = 64;
/** Idle connections that are kept for one host. */
const KEPT_PER_HOST_MAX = 4;
/** An idle connection is kept for this long. Milliseconds. */
const KEPT_MS = 10_000;
/** Addresses of one host name that a connection tries. */
const ADDRESSES_MAX = 4;
/** A connection tries an address for this long before the next one. Milliseconds. */
const ADDRESS_MAX_MS = 1_000;

/** The result of one request. */
export type WebhookResult =
  /** A response with a status from 200 to 299. */
  | { status: number; failure: null; retryAfterMs: null }
  /** Any other response. */
  | { status: number; failure: "status" | "redirect"; retryAfterMs: number | null }
  | { status: null; failure: NoResponse; retryAfterMs: null };

type NoResponse = Exclude<DeliveryFailure, "status" | "redirect">;

interface WebhookRequest {
  url: string;
  /** The signature's headers. */
  headers: Readonly<Record<string, string>>;
  /** The exact text that was signed. */
  body: string;
}

/** How requests leave this process. */
interface SenderOptions {
  /** WEBHOOK_ALLOW_PRIVATE. */
  allowPrivate: boolean;
  /** Returns all IP addresses of a host name. */
  resolve?: (host: string) => Promise<string[]>;
  /** Whether requests may go to this address. */
  mayConnectTo?: (address: string) => boolean;
  connectMaxMs?: number;
  responseMaxMs?: number;
  /** Certificates of authorities to trust instead of the usual ones. */
  ca?: string;
}

/** Opens what {@link sendWebhook} sends with: agents that keep connections, and a look-up that checks the addresses of each new one. */
export function openWebhookSender(options: SenderOptions) {
  const { allowPrivate, ca } = options;
  const resolve = options.resolve ?? (allowPrivate ? resolveLocally : resolveByDns);
  const mayConnectTo = options.mayConnectTo ?? (allowPrivate ? () => true : isPublicAddress);
  const kept = { keepAlive: true, maxFreeSockets: KEPT_PER_HOST_MAX, timeout: KEPT_MS };
  const agents = { "http:": boundHosts(new http.Agent(kept)), "https:": boundHosts(new https.Agent(kept)) };
  return {
    allowPrivate,
    mayConnectTo,
    agents,
    connection: {
      // Called once per connection, which then uses one of the returned addresses.
      lookup: lookupOf(resolve, mayConnectTo),
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: ADDRESS_MAX_MS,
      ...(ca !== undefined && { ca }),
    },
    connectMaxMs: options.connectMaxMs ?? CONNECT_MAX_MS,
    responseMaxMs: options.responseMaxMs ?? RESPONSE_MAX_MS,
    async close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

export type WebhookSender = ReturnType<typeof openWebhookSender>;

function boundHosts<Agent extends http.Agent>(agent: Agent): Agent {
  const keep = agent.keepSocketAlive.bind(agent) as (socket: Duplex) => boolean;
  const bounded = (socket: Duplex) => Object.keys(agent.freeSockets).length < KEPT_HOSTS_MAX && keep(socket);
  return Object.assign(agent, { keepSocketAlive: bounded });
}

/** Also resolves names of the hosts file and of other containers. */
async function resolveLocally(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

/** Does not use libuv's pool: it has only four threads, and a partner's name server may be slow. */
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
        if (!addresses.every(mayConnectTo)) return callback(new SendFailure("refused_address"), []);
        return callback(
          null,
          addresses.slice(0, ADDRESSES_MAX).map((address) => ({ address, family: isIP(address) })),
        );
      },
      () => callback(new SendFailure("unknown_host"), []),
    );
  };
}

/** A request failed without a complete response, or was not sent. {@link sendWebhook} catches it. */
class SendFailure extends Error {
  readonly failure: NoResponse;

  constructor(failure: NoResponse) {
    super(failure);
    this.failure = failure;
  }
}

/** A request on a kept connection failed, usually because the server had closed the connection. */
class StaleConnection extends SendFailure {}

/**
 * Sends one signed request and reads its response: without redirects, without credentials, to an address that is checked whenever a
 * connection is opened. Sends it again, on a new connection, when a kept connection fails. Does not throw when the server fails.
 */
export async function sendWebhook(
  ctx: { webhookSender: WebhookSender },
  request: WebhookRequest,
): Promise<WebhookResult> {
  try {
    return await send(ctx.webhookSender, request).catch((error) => {
      if (!(error instanceof StaleConnection)) throw error;
      return send(ctx.webhookSender, request, false);
    });
  } catch (error) {
    if (!(error instanceof SendFailure)) throw error;
    return { status: null, failure: error.failure, retryAfterMs: null };
  }
}

async function send(
  sender: WebhookSender,
  { url, headers, body }: WebhookRequest,
  mayReuse = true,
): Promise<WebhookResult> {
  const to = URL.parse(url);
  // `allowPrivate` may have changed since the endpoint was created. An IP address as host is checked here, because it is not looked up.
  if (to === null || findUrlProblem(url, sender.allowPrivate) !== null) throw new SendFailure("refused_address");
  const host = hostOf(to);
  if (isIP(host) !== 0 && !sender.mayConnectTo(host)) throw new SendFailure("refused_address");
  const isHttps = to.protocol === "https:";
  const request = (isHttps ? https : http).request(to, {
    method: "POST",
    agent: mayReuse && sender.agents[isHttps ? "https:" : "http:"],
    ...sender.connection,
    maxHeaderSize: HEADERS_MAX,
    headers: {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "user-agent": USER_AGENT,
      ...headers,
    },
  });
  let timedOut = false;
  const timeOut = () => {
    timedOut = true;
    request.destroy();
  };
  const responseTimer = setTimeout(timeOut, sender.responseMaxMs);
  const connectTimer = setTimeout(timeOut, sender.connectMaxMs);
  let stage: "connecting" | "securing" | "open" = "connecting";
  const open = () => {
    stage = "open";
    clearTimeout(connectTimer);
  };
  try {
    return await new Promise<WebhookResult>((resolve, reject) => {
      request.once("socket", (socket) => {
        if (request.reusedSocket) return open();
        socket.once("connect", () => {
          if (isHttps) stage = "securing";
          else open();
        });
        socket.once("secureConnect", open);
      });
      request.on("error", (error: NodeJS.ErrnoException) => {
        if (timedOut) reject(new SendFailure("timeout"));
        else if (error instanceof SendFailure) reject(error);
        else if (error.code?.startsWith("HPE_")) reject(new SendFailure("invalid_response"));
        else if (request.reusedSocket) reject(new StaleConnection("connection"));
        else reject(new SendFailure(stage === "securing" ? "tls" : "connection"));
      });
      request.once("response", (response) => {
        let bytes = 0;
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes < BODY_MAX) return;
          resolve(resultOf(response));
          request.destroy();
        });
        response.once("end", () => resolve(resultOf(response)));
        response.on("error", () => reject(new SendFailure(timedOut ? "timeout" : "connection")));
      });
      request.end(body);
    });
  } finally {
    clearTimeout(responseTimer);
    clearTimeout(connectTimer);
  }
}

function resultOf({ statusCode = 0, headers }: http.IncomingMessage): WebhookResult {
  if (statusCode >= 200 && statusCode < 300) return { status: statusCode, failure: null, retryAfterMs: null };
  const failure = statusCode >= 300 && statusCode < 400 ? "redirect" : "status";
  return { status: statusCode, failure, retryAfterMs: parseRetryAfter(headers["retry-after"]) };
}

/** The wait that `Retry-After` asks for, as seconds or as a date (RFC 9110, section 10.2.3). Null without a valid one. */
function parseRetryAfter(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const at = / GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now());
}
