import type { ApiContext } from "../../context.ts";
import { type Html, html } from "./html.ts";
import { layOut } from "./layout.ts";

/** The page at the root: what this service is and where to go from here. */
export function renderLandingPage(config: ApiContext["config"]): Html {
  const { basePath, baseUrl, ops } = config;
  return layOut(config, {
    title: "Vouchers that burn exactly once",
    main: html`<h1>Vouchers that burn exactly once</h1>
<p class="lead">With this API a shop or a till looks up what a voucher is worth, holds it while its customer checks out, redeems
it under its own order number, or gives it back. Whatever happens to a voucher is sealed into a history that anyone can check.</p>
<ul class="cards">
${card(`${basePath}/docs`, "API reference", "Every request, answer and error, with examples to try.")}
${card(`${basePath}/openapi.json`, "OpenAPI document", "The same for programs, to generate a client from.")}
${card(`${basePath}/readyz`, "Health", "Whether the service and the servers behind it answer right now.")}
${ops.token === null ? null : card(`${basePath}/ops/queues`, "Queue dashboard", "For operators. Asks for the operations token.")}
</ul>
<section aria-labelledby="course">
<h2 id="course">From look-up to proof</h2>
<ol class="steps">
${step("Look up", "What is it worth, and can it be used?", "GET /partner/vouchers/{code}")}
${step("Hold", "Nobody else gets it while your customer pays.", "POST /partner/vouchers/reserve")}
${step("Redeem", "Once, under your order number. Repeat it as often as you like.", "POST /partner/vouchers/redeem")}
${step("Prove", "Read its sealed history and hash it yourself.", "GET /partner/vouchers/{code}/events")}
</ol>
<p>With an API key in <code>$KEY</code>; it says whose vouchers you see:</p>
<pre><code>curl -s '${baseUrl}/partner/vouchers/7Q4K-9MZX-2HTB-W8RC' -H "X-Api-Key: $KEY"</code></pre>
</section>
<section aria-labelledby="retry">
<h2 id="retry">One rule for every trouble</h2>
<p>No answer to a redeem, or a 503? Send it again with the same <code>externalRef</code> until it answers. One reference burns one
voucher, ever, and a repeat gets the first answer again.</p>
</section>
<section aria-labelledby="history">
<h2 id="history">A history that can be checked</h2>
<p>Answers about a voucher carry a <code>verifyUrl</code>. Opened in a browser, it shows when the voucher was issued, redeemed or
cancelled, and checks in front of you that no entry was changed, removed or slipped in. It tells nobody the voucher's code.</p>
</section>`,
  });
}

function card(path: string, title: string, sentence: string): Html {
  return html`<li><a href="${path}">${title}</a><p>${sentence}</p></li>`;
}

function step(title: string, sentence: string, request: string): Html {
  return html`<li><strong>${title}</strong><p>${sentence}</p><code>${request}</code></li>`;
}
