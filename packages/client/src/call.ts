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

/** The service refused this attempt, which changed nothing. `code` is for programs, the message for people. */
export class VoucherRefused extends Error {
  override name = "VoucherRefused";
  readonly status: number;
  /** Accept codes that you do not know. Null for an answer of a proxy, which is only the cause of an OutcomeUnknown. */
  readonly code: components["schemas"]["ErrorCode"] | null;
  readonly requestId: string | null;
  /** Whether an earlier attempt of the same call got no response, so that it may have succeeded. */
  readonly afterLostAttempt: boolean;

  constructor(status: number, body: components["schemas"]["Error"] | null, afterLostAttempt: boolean) {
    super(body?.error ?? `The address answered ${status}.`);
    this.status = status;
    this.code = body?.code ?? null;
    this.requestId = body?.requestId ?? null;
    this.afterLostAttempt = afterLostAttempt;
  }
}

/** It is not known whether the call took effect. Keep its reference and repeat the call; do not treat it as failed. */
export class OutcomeUnknown extends Error {
  override name = "OutcomeUnknown";
}

/** How long a call is retried by default. Milliseconds. */
export const PATIENCE_MS = 60_000;
/** Longest random wait before the first retry. It doubles with each retry, up to the second number. */
const BACKOFF_MS = 1_000;
const BACKOFF_MAX_MS = 8_000;

/**
 * Codes that say that the attempt changed nothing and never will. After any other code with a status that is retried,
 * the outcome is unknown.
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

/** Codes of failures that waiting does not change: an unknown host, a wrong certificate, protocol or address. */
const LASTING = /ENOTFOUND|EPROTO|ERR_SSL|CERT|UNABLE_TO_|ERR_INVALID/;

/** How a response is read. */
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
    /** Default: JSON. */
    as?: Reader<Answer>;
    /** Whether it is repeated after an attempt without a response, which may have succeeded. Default: true. */
    repeats?: boolean;
  },
) => Promise<Answer>;

/**
 * The retry rule of the guide: a network error, 408, 429, every 5xx and every answer without the service's code, such
 * as a proxy's own 404, are retried with the same request, not before `Retry-After`, after a random wait between zero
 * and a bound that doubles ("full jitter").
 * @throws VoucherRefused, or OutcomeUnknown when the patience ends.
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
          // Some frameworks keep the answers of `fetch`.
          cache: "no-store",
          // A redirect would send the key to another address.
          redirect: "manual",
          signal: AbortSignal.timeout(timeoutMs),
        });
        if (response.ok) return await as.read(response);
        failure = new VoucherRefused(response.status, await readError(response), lost);
        waitMs += readRetryAfter(response.headers.get("Retry-After") ?? "");
      } catch (error) {
        // No response, or an incomplete one.
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

/** The body of an error response of the service; null for the answer of a proxy. */
async function readError(response: Response): Promise<components["schemas"]["Error"] | null> {
  const body = await response.json().catch(() => null);
  return typeof body?.code === "string" && typeof body.error === "string" ? body : null;
}

function isFinal({ status, code }: VoucherRefused): boolean {
  return code !== null && status < 500 && status !== 408 && status !== 429;
}

/** Milliseconds of a `Retry-After`, which is a number of seconds or a date; 0 if it is neither. */
function readRetryAfter(header: string): number {
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Math.max(0, ms) || 0;
}
