import type { RequestHandler, Response } from "express";
import type { ErrorCode } from "../api/errors.ts";
import { type LimitingAddresses, limitAddress } from "./middleware/rate-limit.ts";

/** The groups of endpoints in the API reference. */
export type Tag = "Partner" | "Webhooks" | "Issuer" | "Sandbox" | "Marketplace" | "Public verification" | "Health";

/** Who may call an endpoint, and what its handler learns about the caller. */
export interface Access<Caller, Deps = unknown> {
  /** The group of the endpoints with this access. */
  tag: Tag;
  /**
   * The alternative credentials, for the API reference only: `guard` checks them. Each maps a security scheme to its
   * required scopes. `{}` means no credentials.
   */
  security: readonly Record<string, string[]>[];
  /** Errors that the guard can send. */
  errors: readonly ErrorCode[];
  /**
   * Whether pages of the origins in CORS_ORIGINS may call the endpoint. False for API keys, because a page cannot keep
   * a key secret.
   */
  crossOrigin: boolean;
  /** Handlers that admit or refuse a request. */
  guard: (deps: Deps) => RequestHandler[];
  /** The caller that the guard has admitted. */
  callerOf(response: Response): Caller;
  /** Extra fields that every successful response to this caller contains. */
  extraFieldsOf?(response: Response): Record<string, unknown>;
}

/** Health probes: no credentials and no limit. */
export const probe: Access<null> = {
  tag: "Health",
  security: [],
  errors: [],
  crossOrigin: false,
  guard: () => [],
  callerOf: () => null,
};

/** Any caller. Each address has a limit. */
export const anyone: Access<null, LimitingAddresses> = {
  ...probe,
  tag: "Public verification",
  errors: ["rate_limited"],
  crossOrigin: true,
  guard: (deps) => [limitAddress(deps)],
};
