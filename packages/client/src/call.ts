import type { components } from "./api.ts";

/** The settings of a client. Durations are milliseconds. */
export interface Settings {
  /** The address of the service, such as `https://vouchers.example.com`. */
  baseUrl: string;
  apiKey: string;
  /** How long a call is retried. Default: 60 000. */
  patienceMs?: number;
  /** How long one attempt waits for its response. Default: 15 000, because a redeem may take 10 000. */
  timeoutMs?: number;
  /** Replaces the global `fetch`, for proxies and tests. */
  fetch?: typeof fetch;
}

/** The service refused this attempt, which changed nothing. `code` is for programs, and the message for people. */
export class VoucherRefused extends Error {
  override name = "VoucherRefused";
  readonly status: number;
  /** Accept unknown codes. Null for a proxy's response, which occurs only as the cause of an OutcomeUnknown. */
  readonly code: components["schemas"]["ErrorCode"] | null;
  readonly requestId: string | null;
  /** Whether an earlier attempt of the same call got no response. That attempt may have succeeded. */
  readonly afterLostAttempt: boolean;

  constructor(status: number, body: components["schemas"]["Error"] | null, afterLostAttempt: boolean) {
    super(body?.error ?? `The address answered ${status}.`);
    this.status = status;
    this.code = body?.code ?? null;
    this.requestId = body?.requestId ?? null;
    this.afterLostAttempt = afterLostAttempt;
  }
}

/** It is unknown whether the call took effect. Keep its reference and repeat the call. Do not treat it as failed. */
export class OutcomeUnknown extends Error {
  override name = "OutcomeUnknown";
}

/** How long a call is retried by default. Milliseconds. */
export const PATIENCE_MS = 60_000;
/** The limit of the random wait before the first retry. Doubles with each retry, up to BACKOFF_MAX_MS. Milliseconds. */
const BACKOFF_MS = 1_000;
const BACKOFF_MAX_MS = 8_000;

/**
 * Codes which mean that the attempt has changed nothing and never will. After any other code that the client retries,
 * the attempt may have succeeded.
 */
const CHANGED_NOTHING: readonly unknown[] = [
  "request_timeout",
  "rate_limited",
  "too_many_misses",
  "cap_reached",
  "redeem_timeout",
  "voucher_busy",
  "overloaded",
];

/** Error codes of failures that last, such as an unknown host, or a wrong certificate, protocol or address. */
const LASTING = /ENOTFOUND|EPROTO|ERR_SSL|CERT|UNABLE_TO_|ERR_INVALID/;

/** How to read a response. */
interface Reader<Answer> {
  accept: string;
  read(response: Response): Promise<Answer>;
}

// biome-ignore lint/suspicious/noExplicitAny: the caller names the type, and the service's document promises it.
const JSON_BODY: Reader<any> = { accept: "application/json", read: (response) => response.json() };
/** Reads the text of a receipt. */
export const TEXT: Reader<string> = { accept: "text/plain", read: (response) => response.text() };

/** Sends a request until it gets a final response. */
export type Call = <Answer>(
  method: "GET" | "POST" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
  options?: {
    /** By default, JSON. */
    as?: Reader<Answer>;
    /**
     * Whether to repeat the call after an attempt without a response. That attempt may have succeeded. Default: true.
     */
    repeats?: boolean;
  },
) => Promise<Answer>;

/**
 * The retry rule of the guide. Sends the same request again after a network error, after 408, 429 and every 5xx, and
 * after every response without a code of the service, such as a proxy's own 404. Waits at least as long as
 * `Retry-After` asks. The wait is random, from zero to a limit that doubles each time ("full jitter").
 * @throws VoucherRefused, or OutcomeUnknown when the time for retries is over.
 */
export function makeCall({ baseUrl, apiKey, patienceMs = PATIENCE_MS, timeoutMs = 15_000, ...given }: Settings): Call {
  const send = given.fetch ?? fetch;
  const base = baseUrl.replace(/\/+$/, "");
  return async (method, path, body, { as = JSON_BODY, repeats = true } = {}) => {
    const giveUpAt = performance.now() + patienceMs;
    let lost = false;
    for (let attempt = 0; ; attempt++) {
      let failure: unknown;
      let waitMs = Math.random() * Math.min(BACKOFF_MS * 2 ** attempt, BACKOFF_MAX_MS);
      try {
        const response = await send(base + path, {
          method,
          headers: {
            "X-Api-Key": apiKey,
            Accept: as.accept,
            ...(body !== undefined && { "Content-Type": "application/json" }),
          },
          ...(body !== undefined && { body: JSON.stringify(body) }),
          // Forbids caching, because some frameworks cache the responses of `fetch`.
          cache: "no-store",
          // Follows no redirect, which would send the key to another address.
          redirect: "manual",
          signal: AbortSignal.timeout(timeoutMs),
        });
        if (response.ok) return await as.read(response);
        failure = new VoucherRefused(response.status, await readError(response), lost);
        waitMs += readRetryAfter(response.headers.get("Retry-After") ?? "");
      } catch (error) {
        // The response is missing or incomplete.
        failure = error;
      }
      const refusal = failure instanceof VoucherRefused ? failure : null;
      if (refusal !== null && isFinal(refusal)) throw refusal;
      lost ||= !CHANGED_NOTHING.includes(refusal?.code);
      if (performance.now() + waitMs > giveUpAt || (lost && !repeats) || isLasting(failure)) {
        if (!lost) throw failure;
        throw new OutcomeUnknown("No final response from the service", { cause: failure });
      }
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  };
}

function isLasting(failure: unknown): boolean {
  const { cause } = failure as { cause?: { code?: unknown } };
  return LASTING.test(String(cause?.code));
}

/** The body of an error response from the service. Null for the response of a proxy. */
async function readError(response: Response): Promise<components["schemas"]["Error"] | null> {
  const body = await response.json().catch(() => null);
  return typeof body?.code === "string" && typeof body.error === "string" ? body : null;
}

function isFinal({ status, code }: VoucherRefused): boolean {
  return code !== null && status < 500 && status !== 408 && status !== 429;
}

/** The milliseconds of a `Retry-After`, which is a number of seconds or a date. 0 if it is neither. */
function readRetryAfter(header: string): number {
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Math.max(0, ms) || 0;
}
