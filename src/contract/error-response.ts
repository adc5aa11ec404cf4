import { z } from "zod";
import { ERRORS, type ErrorCode } from "./errors.ts";
import { EXAMPLE } from "./example.ts";
import { named, text } from "./fields.ts";

const knownErrorCode = z
  .enum(Object.keys(ERRORS) as ErrorCode[])
  .meta({ id: "KnownErrorCode", description: "The codes of this release." });

/** The body of an error response. The code is open: clients must accept codes of later releases. */
export const errorResponse = named("Error", {
  error: text("An error message that can be shown to the user."),
  code: z.union([knownErrorCode, z.string()]).meta({
    id: "ErrorCode",
    description:
      "A stable code for programs to branch on. Later releases add codes: treat one that you do not know by the status of its response.",
  }),
  requestId: text("The value of `X-Request-Id`. Quote it when you ask us about a response.", EXAMPLE.requestId),
});
