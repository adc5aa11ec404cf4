import { act } from "../act.ts";
import { type HeldAboutPerson, readPerson } from "../read-person.ts";
import { formatUtc, pluralize } from "../words.ts";
import { FIELDS_ON_ORGANIZATION, openPerson, PERSON_FIELDS } from "./named-person.ts";

export const showPerson = act({
  name: "person show",
  on: "voucher",
  mayStandAlone: true,
  role: "admin",
  title: "Show what is held about a person",
  about: "Lists what an erasure of the same person would erase. The audit trail records that you have read it.",
  help: "The object of --json can be given to the person: texts of others are null.",
  examples: ["--user 7f3c…", "--org org_… --ref order-20261121-0007 --json"],
  fields: PERSON_FIELDS,
  furtherForm: { on: "organization", field: "org", fields: FIELDS_ON_ORGANIZATION },
  async run(ctx, id, values) {
    return readPerson(ctx, await openPerson(ctx, id, values));
  },
  said(held, { user, ref, org }, id) {
    const person = user === null ? (ref === null ? `voucher ${id}` : `reference ${ref} of ${org}`) : `user ${user}`;
    const [events, texts] = [held.events.length, held.texts.length];
    if (events + texts === 0) return `Nothing is held about ${person}. Check the spelling: it is compared exactly.`;
    const counts = `${pluralize(events, "event")} and ${pluralize(texts, "other text")}`;
    return [`Held about ${person}: ${counts}.`, ...linesOf(held)].join("\n");
  },
  isReport: true,
});

const OF_OTHER = "(of another person)";

function linesOf({ events, texts }: HeldAboutPerson): string[] {
  return [
    ...events.map(({ occurredAt, voucherId, sequence, eventType, texts: named }) => {
      const list = Object.entries(named).map(([name, text]) => `${name} ${text ?? OF_OTHER}`);
      return `${formatUtc(occurredAt)}  ${voucherId}, event ${sequence}, ${eventType}: ${list.join(", ") || "no text"}`;
    }),
    ...texts.map(({ at, id, kind, text }) => `${formatUtc(at)}  ${id}, ${kind}: ${text ?? OF_OTHER}`),
  ];
}
