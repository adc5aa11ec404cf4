import { SESSION_SECONDS } from "../ops/operator-sessions.ts";
import { type Html, html } from "./html.ts";
import { layOut, type Site } from "./layout.ts";

/** Length of a session, in words on the page. */
const SESSION_HOURS = SESSION_SECONDS / 3_600;

/** Where an operator stands: not signed in, refused a moment ago, or signed in. */
export type LoginState = "none" | "refused" | "open";

/** The page where operators sign in and out. */
export function renderLoginPage(site: Site, state: LoginState): Html {
  if (state === "open") return renderSignedIn(site);
  const refused = state === "refused";
  return layOut(site, {
    title: "Sign in",
    main: html`<h1>Operations</h1>
<p class="lead">The queues that redeem, seal and sweep. Sign in with the token that this service was started with, its
<code>OPS_TOKEN</code>. Partners and customers never need it.</p>
${refused ? html`<p class="verdict bad" id="refusal" role="alert"><strong>That is not the token</strong></p>` : null}
<form method="post" action="${site.basePath}/ops/login">
<label for="token">Operations token</label>
<input id="token" name="token" type="password" required autofocus autocomplete="current-password" spellcheck="false"${refused ? html` aria-invalid="true" aria-describedby="refusal"` : null}>
<button type="submit">Sign in</button>
</form>`,
  });
}

function renderSignedIn(site: Site): Html {
  return layOut(site, {
    title: "Operations",
    main: html`<h1>Operations</h1>
<p class="lead">You are signed in on this browser, for ${SESSION_HOURS} hours at most.</p>
<ul class="cards"><li><a href="${site.basePath}/ops/queues">Queue dashboard</a><p>What waits, what runs, what failed.</p></li></ul>
<form method="post" action="${site.basePath}/ops/logout"><button type="submit">Sign out</button></form>`,
  });
}
