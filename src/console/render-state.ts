import { type Html, html } from "../pages/html.ts";
import { renderStatus } from "../pages/operator-frame.ts";
import { MINUTES, renderTime } from "../pages/time.ts";

/** The state of a key or an operator, and when it was revoked, or else when it expires. */
export function renderState(of: { state: string; revokedAt: Date | null; expiresAt: Date | null }): Html {
  const at = of.revokedAt ?? of.expiresAt;
  const since = at === null ? null : html` ${of.state === "Active" ? "until " : ""}${renderTime(at, MINUTES)}`;
  return html`${renderStatus(of.state)}${since}`;
}
