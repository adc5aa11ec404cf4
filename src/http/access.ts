import type { RequestHandler, Response } from "express";
import type { ApiContext } from "../context.ts";
import type { ErrorCode } from "../domain/errors.ts";
import { limitAddress } from "./spend-limit.ts";

/** Who may call an endpoint, and what its work is told about them. */
export interface Access<Who> {
  /** What the API reference asks for: alternatives, each a security scheme's name with scopes; `{}` is a call without any. */
  security: readonly Record<string, string[]>[];
  /** What a caller is refused with. */
  errors: readonly ErrorCode[];
  /** The handlers that let a caller through or refuse it. */
  guard(ctx: ApiContext): RequestHandler[];
  /** The caller that the guard let through. */
  whoOf(response: Response): Who;
}

/** No key and no token; limited by address. */
export const anyone: Access<null> = {
  security: [],
  errors: ["rate_limited"],
  guard: (ctx) => [limitAddress(ctx)],
  whoOf: () => null,
};

/** Probes, which nothing may keep from asking. */
export const probe: Access<null> = { security: [], errors: [], guard: () => [], whoOf: () => null };
