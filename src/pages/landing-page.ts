import { type Config, hasConfiguredSignIn } from "../platform/config.ts";
import { getRoute, type Route } from "../platform/http/endpoint.ts";
import { wantsPage } from "../platform/http/negotiate.ts";
import { sendJson } from "../platform/http/respond.ts";
import { renderCheckForm } from "./check-form.ts";
import { offerPage } from "./error-page.ts";
import { type Html, html } from "./html.ts";
import { GUIDE_PATH, layOut, type Site } from "./layout.ts";
import { pageHeaders } from "./page-headers.ts";
import { servePage } from "./serve-file.ts";
import { PACKAGES_PATH } from "./serve-packages.ts";

type LandingSite = Site & Pick<Config, "ops" | "production">;

type Card = readonly [path: string, title: string, sentence: string];

const CARDS: readonly Card[] = [
  [GUIDE_PATH, "Guide for partners", "How to combine the calls, what to do on errors, and a client."],
  ["/docs", "API reference", "Every request, response and error, with examples to try."],
  ["/openapi.json", "OpenAPI document", "The same for programs, to generate a client from."],
  [`${PACKAGES_PATH}/`, "Packages", "A typed client, a check of your own client, and a verifier of receipts."],
  ["/readyz", "Health", "Whether the service and its servers are up."],
  [
    "/portal",
    "Portal",
    "For people of a partner: redemptions, sums and receipts. Requires an API key that can only read.",
  ],
];

const OPERATOR_CARDS: readonly Card[] = [
  ["/ops", "Operator pages", "Find a voucher, an organization's redemptions and batches."],
  ["/ops/queues", "Queue dashboard", "For operators, who sign in."],
];

/** The start page, and its links as JSON for programs. */
export function landingRoute({ config }: { config: LandingSite }): Route {
  const send = servePage(() => renderLandingPage(config));
  const links = {
    name: "Partner Voucher API",
    docs: `${config.baseUrl}/docs`,
    guide: `${config.baseUrl}${GUIDE_PATH}`,
    openapi: `${config.baseUrl}/openapi.json`,
    health: `${config.baseUrl}/healthz`,
    readiness: `${config.baseUrl}/readyz`,
  };
  return getRoute("/", pageHeaders, offerPage(config), (request, response, next) => {
    if (wantsPage(response)) return send(request, response, next);
    sendJson(response, 200, links);
  });
}

function renderLandingPage(config: LandingSite): Html {
  const { basePath, baseUrl } = config;
  const isOperated = hasConfiguredSignIn(config);
  return layOut(config, {
    title: "Redeem each voucher exactly once",
    description: "Look up, reserve and redeem vouchers exactly once, and check the history of a voucher.",
    main: html`<h1>Redeem each voucher exactly once</h1>
<p class="lead">Shops and tills use this API to look up what a voucher is worth, reserve it during checkout, redeem it \
under their
own order number, or release it. Each change is sealed into a history that anyone can check.</p>
<section aria-labelledby="check">
<h2 id="check">Check a voucher</h2>
<p>See when a voucher was issued, redeemed or cancelled, and whether its history is intact. Receipts usually have the \
link or the id.</p>
${renderCheckForm(config)}
</section>
<section aria-labelledby="developers">
<h2 id="developers">For developers and operators</h2>
<ul class="cards">
${[...CARDS, ...(isOperated ? OPERATOR_CARDS : [])].map((card) => renderCard(basePath, card))}</ul>
</section>
<section aria-labelledby="course">
<h2 id="course">From look-up to proof</h2>
<ol class="cards">
${step("1. Look up", "What is it worth, and can it be used?", "GET /partner/vouchers/{code}")}
${step("2. Reserve", "No other caller can use it while your customer pays.", "POST /partner/vouchers/reserve")}
${step("3. Redeem", "Once, under your order number. Repeating the request is safe.", "POST /partner/vouchers/redeem")}
${step("4. Prove", "Read its sealed history and check the hashes yourself.", "GET /partner/vouchers/{code}/events")}
</ol>
<p>With your API key in <code>$KEY</code>, which determines the vouchers that you can see:</p>
<pre><code>curl -s '${baseUrl}/partner/vouchers/7Q4K-9MZX-2HTB-W8RC' -H "X-Api-Key: $KEY"</code></pre>
</section>
<section aria-labelledby="retry">
<h2 id="retry">If in doubt, send it again</h2>
<p>No response to a redeem, or a 503? Send the request again with the same <code>externalRef</code> until you get a \
response. One
reference redeems at most one voucher, and a repeated request gets the first response again. If it contains \
<code>otherVoucher</code>,
the reference has redeemed another voucher: do not accept this one.
<a href="${basePath}/docs/retries">The guide's table</a> says what to do with each response.</p>
</section>
<section aria-labelledby="history">
<h2 id="history">A history that can be checked</h2>
<p>Responses about a voucher contain a <code>verifyUrl</code>. In a browser, it shows what the voucher is and \
what became of it. Its page for experts checks that no entry was changed, removed or inserted. Neither reveals the \
voucher's code.</p>
</section>`,
  });
}

function renderCard(basePath: string, [path, title, sentence]: Card): Html {
  return html`<li><a href="${basePath}${path}">${title}</a><p>${sentence}</p></li>
`;
}

function step(title: string, sentence: string, request: string): Html {
  return html`<li><strong>${title}</strong><p>${sentence}</p><code>${request}</code></li>`;
}
