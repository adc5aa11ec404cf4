import { findOrganization, updateTimeZone } from "../../core/catalog/db/catalog.ts";
import { AppError } from "../../platform/api/errors.ts";
import { act } from "../act.ts";
import { text } from "../fields.ts";
import { withAuditEntry } from "../with-audit-entry.ts";

/** The name of a time zone as the runtime spells it. Null if the runtime does not know the zone. */
function findZone(name: string): string | null {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return null;
  }
}

const zone = text("Time zone", 64, {
  hint: "For times, days and months in the portal: UTC, or such as Europe/Berlin.",
});
const read = zone.json.transform(findZone).refine((name) => name !== null, "must be a time zone such as Europe/Berlin");

export const changeOrganization = act({
  name: "org change",
  on: "organization",
  role: "admin",
  title: "Change the time zone",
  about: "The portal shows times, days and months in it at once. The API and its CSV files keep UTC.",
  examples: ["org_… --time-zone Europe/Berlin"],
  fields: { timeZone: { ...zone, placeholder: "<zone>", typed: read, json: read } },
  present: async (db, id) => ({ timeZone: (await findOrganization(db, id))?.timeZone ?? "" }),
  async run(ctx, id, { timeZone }) {
    await withAuditEntry(ctx, { type: "Organization", id }, async (tx) => {
      const isChanged = await updateTimeZone(tx, { id, timeZone });
      if (!isChanged) throw new AppError("not_found", `There is no organization ${id}.`);
    });
    return { id, timeZone };
  },
  said: ({ id, timeZone }) => `The pages for people of ${id} now have the time zone ${timeZone}.`,
});
