import type { z } from "zod";
import { type LookUpResponse, lookUpResponse } from "../../contract/look-up.ts";
import { type AdvanceResponse, advanceResponse } from "../../contract/sandbox.ts";
import { ServersUnavailable, UsageError } from "../exit-code.ts";

/** A voucher, and the service's clock when it was read. */
export interface SeenVoucher extends LookUpResponse {
  now: Date;
}

/** Calls that the checks send to the service themselves, not through the faulty proxy. */
export interface SandboxService {
  /** A voucher, or null when the key's organization has none with this code. */
  lookUp(code: string): Promise<SeenVoucher | null>;
  /** Moves the times of the sandbox back. */
  advance(seconds: number): Promise<AdvanceResponse>;
}

const TIMEOUT_MS = 30_000;

/**
 * The service at an address, called with a sandbox key.
 * @throws UsageError from each call that the service refuses; ServersUnavailable when it does not answer, or answers 429 or 5xx.
 */
export function sandboxService(url: string, key: string, signal: AbortSignal): SandboxService {
  async function call<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    body?: object,
  ): Promise<{ body: z.output<Schema>; now: Date } | null> {
    const { response, text } = await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
      .then(async (response) => ({ response, text: await response.text() }))
      .catch((error: Error) => {
        signal.throwIfAborted();
        throw new ServersUnavailable(
          `${url} does not answer: ${(error.cause as Error | undefined)?.message ?? error.message}.`,
        );
      });
    const { status } = response;
    const answer = parseObject(text);
    if (status === 404 && answer.code === "voucher_not_found") return null;
    const read = response.ok ? schema.safeParse(answer) : null;
    if (read?.success) return { body: read.data, now: new Date(response.headers.get("date") ?? "") };
    const problem = `${url}${path} answered ${status}: ${answer.error ?? "this is not the partner API."}`;
    throw status >= 500 || status === 429 ? new ServersUnavailable(problem) : new UsageError(problem);
  }
  return {
    async lookUp(code) {
      const found = await call(lookUpResponse, `/partner/vouchers/${encodeURIComponent(code)}`);
      return found === null ? null : { ...found.body, now: found.now };
    },
    async advance(seconds) {
      const moved = await call(advanceResponse, "/sandbox/advance", { seconds });
      if (moved === null) throw new Error("the sandbox did not move");
      return moved.body;
    },
  };
}

/** The object in a JSON text. Empty if the text is something else. */
export function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
