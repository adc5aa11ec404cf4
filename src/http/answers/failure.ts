import { z } from "zod";
import type { ErrorCode } from "../../domain/errors.ts";
import { EXAMPLE } from "./example.ts";

/** The body of every refusal with one of these codes (contract, "Errors"). */
export function failure(codes: readonly [ErrorCode, ...ErrorCode[]]) {
  return z.object({
    error: z.string().meta({ description: "What happened, written to be shown to a person." }),
    code: z.enum(codes).meta({ description: "Stable; for programs to branch on." }),
    requestId: z.string().meta({
      description: "The same as in `X-Request-Id`. Give it to us when you ask about an answer.",
      examples: [EXAMPLE.requestId],
    }),
  });
}
