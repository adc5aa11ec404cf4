import { z } from "zod";
import { EXAMPLE, examples } from "../../../platform/api/example.ts";
import { named, sandbox, text, textUpTo } from "../../../platform/api/fields.ts";
import { type Language, translateInto } from "../../../platform/api/sentences.ts";
import { ticket } from "../../voucher/api/typed-fields.ts";

const REASON_MAX = 200;

export const releaseRequest = named("ReleaseRequest", {
  ticket,
  reason: textUpTo(
    REASON_MAX,
    "Why the reservation is not needed. Stored with the reservation.",
    "customer left",
  ).nullish(),
});

examples.add(releaseRequest, {
  ticket: { summary: "The customer left", value: { ticket: EXAMPLE.ticket, reason: "customer left" } },
});

export const releaseResponse = z
  .union([
    z
      .object({ released: z.literal(true).meta({ description: "This call ended the reservation." }), sandbox })
      .meta({ id: "Released", description: "The voucher is free again." }),
    z
      .object({
        released: z.literal(false).meta({ description: "There was no live reservation." }),
        reason: text("Why there was nothing to release: a sentence in the language of `Content-Language`."),
        sandbox,
      })
      .meta({ id: "NothingReleased", description: "The ticket has no live reservation. This is not an error." }),
  ])
  .meta({ id: "Release" });

type ReleaseResponse = z.output<typeof releaseResponse>;

/** The same response for ended, unknown and other organizations' tickets, so that callers cannot tell them apart. */
export function nothingReleased(language: Language): ReleaseResponse {
  return { released: false, reason: translateInto(language)("nothingReleased") };
}

examples.add(releaseResponse, {
  released: { summary: "The reservation was ended", value: { released: true } },
  nothing: { summary: "There was nothing to release", value: nothingReleased("en") },
});
