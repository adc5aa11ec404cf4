import type { Request, Response } from "express";
import { networkOf } from "./request-headers.ts";

declare global {
  namespace Express {
    interface Locals {
      /** Set by {@link signalOf}. */
      signal?: AbortSignal;
    }
  }
}

/** A caller of an endpoint that is open to anyone: a signed-in user, or the network of an anonymous caller. */
export interface Visitor {
  visitor: string;
  signal: AbortSignal;
}

/** Aborts when the caller disconnects or has its response. Made on demand, because batched calls do not need it. */
export function signalOf(response: Response): AbortSignal {
  const { locals } = response;
  if (locals.signal === undefined) {
    const leaving = new AbortController();
    if (response.closed) leaving.abort();
    else response.once("close", () => leaving.abort());
    locals.signal = leaving.signal;
  }
  return locals.signal;
}

/** The caller of a request as a visitor. */
export function visitorOf(request: Request, response: Response): Visitor {
  return { visitor: response.locals.userId ?? networkOf(request.ip), signal: signalOf(response) };
}
