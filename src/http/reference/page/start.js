// Draws the reference from the document that this same service serves. Swagger UI comes as a global, SwaggerUIBundle.

const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

const spec = await (await fetch("openapi.json")).json();
tellWhereRequestsGo(spec.servers[0].url);
SwaggerUIBundle({
  spec,
  domNode: document.querySelector("#reference"),
  presets: [SwaggerUIBundle.presets.apis],
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  // Nothing is asked of anybody else, and no key is kept when the page is closed.
  validatorUrl: null,
  persistAuthorization: false,
});

/** A browser lets a page call its own origin only, and the document names one address of possibly several. */
function tellWhereRequestsGo(server) {
  if (new URL(server).origin === location.origin) return;
  const notice = document.querySelector("#elsewhere");
  const link = notice.querySelector("a");
  link.href = `${server}/docs`;
  link.textContent = server;
  notice.hidden = false;
}
