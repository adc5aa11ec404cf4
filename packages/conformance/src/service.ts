import { ServiceUnavailable, UnusableOptions } from "./errors.ts";

/** The parts of a look-up that the checks need, and the service's clock at the time of the read. */
export interface SeenVoucher {
  voucher: { id: string; status: string; validUntil: string };
  reservation: { startedAt: string; expiresAt: string } | null;
  sandbox?: boolean;
  now: Date;
}

/** Calls that the checks themselves send to the service, without the faulty proxy. */
export interface SandboxService {
  /** A voucher. Null if the key's organization has none with this code. */
  lookUp(code: string): Promise<SeenVoucher | null>;
  /** Moves the times of the sandbox into the past. */
  advance(seconds: number): Promise<void>;
}

const TIMEOUT_MS = 30_000;

/** Sends a call and returns the response's body. Null if the organization has no such voucher. */
export type ServiceCall = (
  path: string,
  isExpected: (answer: Record<string, unknown>) => boolean,
  body?: object,
) => Promise<Record<string, unknown> | null>;

/** Makes calls with a key. Each throws the errors of {@link sandboxService}. */
export function makeServiceCall(url: string, key: string, signal: AbortSignal): ServiceCall {
  return async function call(
    path: string,
    isExpected: (answer: Record<string, unknown>) => boolean,
    body?: object,
  ): Promise<Record<string, unknown> | null> {
    const { response, text } = await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      // Follows no redirect, which would send the key to another address.
      redirect: "manual",
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
      .then(async (response) => ({ response, text: await response.text() }))
      .catch((error: Error) => {
        signal.throwIfAborted();
        throw new ServiceUnavailable(
          `${url} does not answer: ${(error.cause as Error | undefined)?.message ?? error.message}.`,
        );
      });
    const { status } = response;
    const answer = parseObject(text);
    if (status === 404 && answer.code === "voucher_not_found") return null;
    if (response.ok && isExpected(answer)) return { ...answer, now: new Date(response.headers.get("date") ?? "") };
    const problem = `${url}${path} answered ${status}: ${answer.error ?? "this is not the partner API."}`;
    throw status >= 500 || status === 429 ? new ServiceUnavailable(problem) : new UnusableOptions(problem);
  };
}

/**
 * The service at an address, called with a sandbox key.
 * @throws UnusableOptions when the service refuses a call; ServiceUnavailable when it does not answer, or answers with
 * 429 or 5xx.
 */
export function sandboxService(url: string, key: string, signal: AbortSignal): SandboxService {
  const call = makeServiceCall(url, key, signal);
  return {
    async lookUp(code) {
      const path = `/partner/vouchers/${encodeURIComponent(code)}`;
      return (await call(path, ({ voucher }) => typeof voucher === "object")) as SeenVoucher | null;
    },
    async advance(seconds) {
      await call("/sandbox/advance", ({ advancedSeconds }) => advancedSeconds === seconds, { seconds });
    },
  };
}

/** The object in a JSON text. Empty if the text is not a JSON object. */
export function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
