import type { RequestHandler, Response } from "express";
import type { ApiContext } from "../context.ts";
import type { ErrorCode } from "../contract/errors.ts";
import { limitAddress } from "./middleware/rate-limit.ts";

/** Who may call an endpoint, and what its handler learns about the caller. */
export interface Access<Caller> {
  /** Alternatives for the API reference, each a security scheme's name with its scopes; `{}` is a call without credentials. */
  security: readonly Record<string, string[]>[];
  errors: readonly ErrorCode[];
  /** Whether pages of the origins in CORS_ORIGINS may call it. Never true for API keys: a page cannot keep a key secret. */
  crossOrigin: boolean;
  /** Handlers that admit or refuse a request. */
  guard(ctx: ApiContext): RequestHandler[];
  /** The caller that the guard has admitted. */
  callerOf(response: Response): Caller;
  /** Extra fields that every successful response to this caller contains. */
  extraFieldsOf?(response: Response): Record<string, unknown>;
}

/** Open to anyone; limited by address. */
export const anyone: Access<null> = {
  security: [],
  errors: ["rate_limited"],
  crossOrigin: true,
  guard: (ctx) => [limitAddress(ctx)],
  callerOf: () => null,
};

/** For probes: never limited. */
export const probe: Access<null> = {
  security: [],
  errors: [],
  crossOrigin: false,
  guard: () => [],
  callerOf: () => null,
};
