import { z } from "zod";
import { LANGUAGES } from "../../platform/api/sentences.ts";
import { header } from "./response-headers.ts";

/** The header of requests whose responses contain sentences for people. */
export const ACCEPT_LANGUAGE = z.object({
  "Accept-Language": z
    .string()
    .optional()
    .meta({
      description: `The languages of the person who reads \`error\` and \`reason\`, as browsers send them, such as \
\`de-AT, en;q=0.5\`. The service speaks ${LANGUAGES.join(", ")}; English is the default.`,
    }),
});

/** The header of every error. */
export const CONTENT_LANGUAGE = header(
  "Content-Language",
  z.string(),
  "The language of the sentences in the body, such as `de`.",
);

/** The header of a successful response that contains a sentence. */
export const CONTENT_LANGUAGE_OF_REASON = {
  "Content-Language": z.string().optional().meta({ description: "With a `reason`: the language in which it is." }),
};
