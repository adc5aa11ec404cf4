import { z } from "zod";
import { AppError } from "../../domain/errors.ts";
import { probe } from "../access.ts";
import { endpoint } from "../endpoint.ts";

/** Longest wait for a server that a readiness probe asks. Milliseconds. */
const PROBE_MS = 1_500;

const up = z.literal("ok").meta({ description: "Always ok: what is not answers otherwise." });

/** GET /healthz: the process is up. */
export const health = endpoint({
  method: "get",
  path: "/healthz",
  operationId: "health",
  tag: "Health",
  summary: "Is the process up?",
  description: "For liveness probes: answers while the process can answer at all, and asks no other server.",
  access: probe,
  parameters: {},
  answer: z.object({ status: up }).meta({ id: "Health" }),
  answerDescription: "It is up.",
  answerExamples: { ok: { summary: "Up", value: { status: "ok" } } },
  errors: [],
  work: async () => ({ status: "ok" as const }),
});

const servers = {
  postgres: z.enum(["ok", "unavailable"]).meta({ description: "Whether Postgres answers." }),
  redis: z.enum(["ok", "unavailable"]).meta({ description: "Whether Redis answers and redemptions can be asked for." }),
};

/** GET /readyz: Postgres and Redis answer, and redeems can be asked for; 503 with which server does not. */
export const readiness = endpoint({
  method: "get",
  path: "/readyz",
  operationId: "readiness",
  tag: "Health",
  summary: "Can it serve?",
  description: "For readiness probes: asks Postgres and Redis, for at most 1.5 seconds.",
  access: probe,
  parameters: {},
  answer: z.object({ status: up, ...servers }).meta({ id: "Readiness" }),
  answerDescription: "It can.",
  answerExamples: { ok: { summary: "Ready", value: { status: "ok", postgres: "ok", redis: "ok" } } },
  refusalDetails: {
    fields: z.object(servers),
    example: { error: "No answer from Redis.", postgres: "ok", redis: "unavailable" },
  },
  errors: ["unavailable"],
  async work(ctx) {
    const [postgres, pong] = await Promise.all([answers(ctx.pool.query("SELECT 1")), answers(ctx.redis.ping())]);
    const redis = pong && ctx.redeemQueue.isOpen;
    if (postgres && redis) return { status: "ok", postgres: "ok", redis: "ok" } as const;
    const silent = [postgres ? [] : "Postgres", redis ? [] : "Redis"].flat().join(" and ");
    throw new AppError("unavailable", `No answer from ${silent}.`, {
      retryAfterSeconds: 1,
      details: { postgres: postgres ? "ok" : "unavailable", redis: redis ? "ok" : "unavailable" },
    });
  },
});

async function answers(asked: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, PROBE_MS, false);
  });
  try {
    return await Promise.race([
      asked.then(
        () => true,
        () => false,
      ),
      late,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
