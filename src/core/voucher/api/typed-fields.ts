import { EXAMPLE } from "../../../platform/api/example.ts";
import { filledTextUpTo, input, isErasedForm, text } from "../../../platform/api/fields.ts";
import { problem } from "../../../platform/api/problems.ts";
import { hasAtMost, isLongerThan, NORMALISED_MAX } from "../../../platform/text.ts";
import { normaliseTicket } from "../codes.ts";
import { isPathSegment, normaliseReference } from "../references.ts";

// Fields that people type or scan: codes, tickets and references.

const REFERENCE_MAX = 128;

/** The rules for the stored form of a caller's own reference. */
const storedReference = input
  .refine((value) => !isLongerThan(value, NORMALISED_MAX), {
    error: problem("tooLong", { max: REFERENCE_MAX }),
    abort: true,
  })
  .trim()
  .min(1, problem("empty"))
  .refine((value) => hasAtMost(value, REFERENCE_MAX), {
    error: problem("tooLong", { max: REFERENCE_MAX }),
    abort: true,
  })
  .refine((value) => !/\p{Cc}/u.test(value), problem("controlCharacters"))
  .refine((value) => !isErasedForm(value), problem("erased"));

const TRIMMED =
  "White space at its ends is removed: spaces of any kind, tabs and line ends. Control characters are rejected, and " +
  "so is a text that begins with `erased:`.";

/** The id of a payment, trimmed but not normalised further, because no person types it. */
export function paymentReference(description: string, example: string) {
  return storedReference.meta({
    maxLength: REFERENCE_MAX,
    description: `${description} ${TRIMMED}`,
    examples: [example],
  });
}

/** A caller's own reference in a request, exactly as sent. {@link normaliseReference} makes the stored text. */
export function reference(description: string, example: string) {
  return input
    .superRefine((value, issues) => {
      const stored = normaliseReference(value);
      const message = storedReference.safeParse(stored).error?.issues[0]?.message;
      if (message !== undefined) issues.addIssue(message);
      else if (!isPathSegment(stored)) issues.addIssue(problem("noPathSegment"));
    })
    .meta({
      maxLength: REFERENCE_MAX,
      description: `${description} ${TRIMMED} Format characters, such as zero-width spaces, are removed too, and the \
rest is compared in Unicode's form NFC. \`.\` and \`..\` are rejected.`,
      examples: [example],
    });
}

/** Maximum input length of a code or ticket. Codes have at most 64 characters. The rest is for separators. */
const CODE_INPUT_MAX = 256;

/** A code or a ticket in a request. A ticket is normalised to the form in which it was issued. */
function typedText(description: string, example: string) {
  const field = filledTextUpTo(CODE_INPUT_MAX, description, example);
  return field.overwrite(normaliseTicket).meta(field.meta() ?? {});
}

export const code = typedText(
  "The voucher's code, in any case, with or without white space, dashes, full stops, asterisks and low lines, " +
    "with O for 0 and I or L for 1. A reservation's ticket also works.",
  EXAMPLE.code,
);

export const ticket = typedText("The ticket of a reservation.", EXAMPLE.ticket);

export const codeOrTicket = text("A voucher's code in any accepted spelling, or a reservation's ticket.", EXAMPLE.code);
