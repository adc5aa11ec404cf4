import { z } from "zod";
import type { ErrorCode } from "./errors.ts";
import { EXAMPLE } from "./example.ts";

/** The body of an error response with one of these codes. */
export function errorResponse(codes: readonly ErrorCode[]) {
  return z.object({
    error: z.string().meta({ description: "An error message that can be shown to the user." }),
    code: z.enum(codes).meta({ description: "A stable code for programs to branch on." }),
    requestId: z.string().meta({
      description: "The value of `X-Request-Id`. Quote it when you ask us about a response.",
      examples: [EXAMPLE.requestId],
    }),
  });
}
