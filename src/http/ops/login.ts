import express, { type Request, type RequestHandler, type Response } from "express";
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import type { ApiContext } from "../../context.ts";
import { AppError } from "../../domain/errors.ts";
import { networkOf } from "../caller-network.ts";
import { renderLoginPage } from "../pages/login-page.ts";
import { alwaysPage, sendPage } from "../pages/offer-page.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import type { Route } from "../route.ts";
import { limitAddress } from "../spend-limit.ts";
import type { OperatorSessions } from "./operator-sessions.ts";
import { refuseCrossSite } from "./refuse-cross-site.ts";

/** Wrong tokens that one address may try in a quarter of an hour, per process. A token cannot be guessed anyway: this keeps the log short. */
const WRONG_TOKENS_MAX = 10;
const WRONG_TOKENS_SECONDS = 900;

const readForm = express.urlencoded({ extended: false, limit: "16kb" });

/** GET /ops/login: the form, or who is signed in already. POST: a session for the right token. */
export function loginRoute(ctx: ApiContext, sessions: OperatorSessions): Route {
  const { config } = ctx;
  const attempts = new RateLimiterMemory({ points: WRONG_TOKENS_MAX, duration: WRONG_TOKENS_SECONDS });
  return {
    path: "/ops/login",
    methods: {
      get: [
        ...pageHandlers(ctx),
        async (request, response) => {
          sendPage(response, 200, renderLoginPage(config, (await sessions.isOpen(request)) ? "open" : "none"));
        },
      ],
      post: [
        ...pageHandlers(ctx),
        refuseCrossSite,
        readForm,
        async (request: Request, response: Response) => {
          const address = networkOf(request.ip);
          // Charged before the token is looked at, so that no burst of attempts slips through.
          await charge(attempts, address);
          const token: unknown = request.body?.token;
          if (typeof token === "string" && sessions.isToken(token)) {
            await attempts.reward(address);
            await sessions.begin(response);
            return response.redirect(303, `${config.basePath}/ops/queues`);
          }
          response.locals.errorCode = "invalid_token";
          sendPage(response, 401, renderLoginPage(config, "refused"));
        },
      ],
    },
  };
}

/** POST /ops/logout. */
export function logoutRoute(ctx: ApiContext, sessions: OperatorSessions): Route {
  return {
    path: "/ops/logout",
    methods: {
      post: [
        ...pageHandlers(ctx),
        refuseCrossSite,
        (_request, response) => {
          sessions.end(response);
          response.redirect(303, `${ctx.config.basePath}/ops/login`);
        },
      ],
    },
  };
}

function pageHandlers(ctx: ApiContext): RequestHandler[] {
  return [pageHeaders({ hasForm: true }), alwaysPage(ctx.config), limitAddress(ctx)];
}

/** @throws AppError `rate_limited` when the address has used up its attempts. */
async function charge(attempts: RateLimiterAbstract, address: string): Promise<void> {
  try {
    await attempts.consume(address);
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    throw new AppError(
      "rate_limited",
      "Too many wrong tokens came from your address. Please wait a quarter of an hour.",
      {
        retryAfterSeconds: Math.ceil(refusal.msBeforeNext / 1_000),
      },
    );
  }
}
