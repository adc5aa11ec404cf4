import { type Html, html } from "./html.ts";

const DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });
const SECONDS = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", timeZone: "UTC" });
export const MINUTES = new Intl.DateTimeFormat("en-GB", { timeStyle: "short", timeZone: "UTC" });

/** A moment in UTC, to the second by default. Scripts read the exact time from the attribute `datetime`. */
export function renderTime(at: string | Date, time: Intl.DateTimeFormat = SECONDS): Html {
  const moment = new Date(at);
  return html`<time datetime="${moment.toISOString()}">${DATE.format(moment)}, ${time.format(moment)} UTC</time>`;
}
