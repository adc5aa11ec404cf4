import { z } from "zod";
import { findBrandFace, putLogo, updateBrandColour } from "../../core/catalog/db/brand-faces.ts";
import { AppError } from "../../platform/api/errors.ts";
import { brandColour, brandLogo, text as shown } from "../../platform/api/fields.ts";
import { act } from "../act.ts";
import { colour, flag, optional, picture } from "../fields.ts";
import { withAuditEntry } from "../with-audit-entry.ts";

export const changeBrand = act({
  name: "brand change",
  on: "brand",
  role: "admin",
  scope: "issuer",
  title: "Change the logo and the colour",
  about: "Customers see them at once on all public pages of its products. What is left out stays as it is.",
  examples: ['brd_… --logo logo.png --colour "#0a7f5a"', "brd_… --remove-logo --colour none"],
  fields: {
    logo: optional(picture("Logo", { hint: "A PNG, JPEG or WebP file. Pages show it on white." })),
    removeLogo: flag("Remove the logo"),
    colour: optional(colour("Colour", { hint: "Of the button, such as #0a7f5a. none: the service's own colour." })),
  },
  present: async (db, id) => ({ colour: (await findBrandFace(db, id))?.colour ?? "none" }),
  result: z.object({ id: shown("The brand's id."), colour: brandColour, logo: brandLogo }),
  run: (ctx, id, { logo, removeLogo, colour }) =>
    withAuditEntry(ctx, { type: "Brand", id }, async (tx) => {
      const before = await findBrandFace(tx, id);
      if (before === null) throw new AppError("not_found", `There is no brand ${id}.`);
      const after = {
        colour: colour === "none" ? null : (colour ?? before.colour),
        logo: logo?.name ?? (removeLogo ? null : before.logo),
      };
      if (logo !== null || removeLogo)
        await putLogo(tx, { brandId: id, name: after.logo, content: logo?.content ?? null });
      await updateBrandColour(tx, { brandId: id, colour: after.colour });
      return { id, ...after };
    }),
  said: ({ id, colour, logo }) =>
    `Brand ${id} has the colour ${colour ?? "of the service"} and ${logo === null ? "no logo" : `the logo ${logo}`}.`,
});
