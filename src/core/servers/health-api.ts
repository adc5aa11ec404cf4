import { z } from "zod";
import { errorResponse } from "../../platform/api/errors.ts";
import { examples } from "../../platform/api/example.ts";
import { named } from "../../platform/api/fields.ts";

const status = z.literal("ok").meta({ description: "Always `ok`; otherwise the response is an error." });

export const healthResponse = named("Health", { status });
examples.add(healthResponse, { ok: { summary: "Up", value: { status: "ok" } } });

/** The state of each server, in successful and failed responses of the readiness probe. */
const serverStates = z.object({
  postgres: z.enum(["ok", "unavailable", "outdated", "copied"]).meta({
    description:
      "`unavailable`: Postgres does not answer or refuses writes; `outdated`: the schema lacks migrations of this " +
      "release; `copied`: the database is a copy of another deployment's database, or its files were set back; " +
      "the error says what to do.",
  }),
  redis: z.enum(["ok", "unavailable"]).meta({
    description:
      "`unavailable`: Redis does not answer or refuses writes, or redemptions cannot be queued; the error says why.",
  }),
});

const silentShards = z
  .array(z.string())
  .optional()
  .meta({
    description:
      "Shards of the queues whose Redis server does not answer or refuses writes, such as `2/6`: redemptions of " +
      "their vouchers get 503. Absent when there are none.",
  });

const clockAheadSeconds = z
  .int()
  .optional()
  .meta({
    description:
      "How far the database's clock has jumped ahead of the time that has passed. Absent if it has not. Lists of " +
      "redemptions do not follow it.",
  });

export const readinessResponse = named("Readiness", { status, ...serverStates.shape, silentShards, clockAheadSeconds });
examples.add(readinessResponse, { ok: { summary: "Ready", value: { status: "ok", postgres: "ok", redis: "ok" } } });

export const readinessError = errorResponse.extend(serverStates.shape).meta({ id: "ReadinessError" });
