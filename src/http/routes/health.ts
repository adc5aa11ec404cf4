import type { Response } from "express";
import type { ApiContext } from "../../context.ts";
import { STATUS } from "../error-map.ts";
import { answer, type Route } from "../route.ts";

/** Longest wait for a server that a readiness probe asks. Milliseconds. */
const PROBE_MS = 1_500;

/** GET /healthz: the process is up. */
export const healthRoute: Route = {
  path: "/healthz",
  methods: { get: [answer(async () => ({ status: "ok" }))] },
};

/** GET /readyz: Postgres and Redis answer, and redeems can be asked for; 503 with which server does not. */
export function readyRoute(ctx: ApiContext): Route {
  return {
    path: "/readyz",
    methods: {
      get: [
        answer(async (_request, response: Response) => {
          const [postgres, pong] = await Promise.all([answers(ctx.pool.query("SELECT 1")), answers(ctx.redis.ping())]);
          const redis = pong && ctx.redeemQueue.isOpen;
          const servers = { postgres: postgres ? "ok" : "unavailable", redis: redis ? "ok" : "unavailable" };
          if (postgres && redis) return { status: "ok", ...servers };
          const silent = [postgres ? [] : "Postgres", redis ? [] : "Redis"].flat().join(" and ");
          const { requestId } = response.locals;
          response.locals.errorCode = "unavailable";
          response.status(STATUS.unavailable).setHeader("Retry-After", "1");
          return { error: `No answer from ${silent}.`, code: "unavailable", requestId, ...servers };
        }),
      ],
    },
  };
}

async function answers(probe: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, PROBE_MS, false);
  });
  try {
    return await Promise.race([
      probe.then(
        () => true,
        () => false,
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
