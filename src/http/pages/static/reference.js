// Draws the reference from the document that this same service serves. Swagger UI comes as a global, SwaggerUIBundle.

const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

// What Swagger UI leaves without a name gets one that a screen reader can say.
const nameParts = () => {
  for (const choice of document.querySelectorAll("select:not([aria-label])")) {
    choice.setAttribute("aria-label", choice.closest(".servers") ? "Server" : "Example");
  }
  for (const [part, name] of [
    [".information-container", "About this API"],
    [".schemes-server-container", "Server and keys"],
  ]) {
    const element = document.querySelector(`${part}:not([role])`);
    element?.setAttribute("role", "region");
    element?.setAttribute("aria-label", name);
  }
};
new MutationObserver(nameParts).observe(document.body, { childList: true, subtree: true });

const reference = document.querySelector("#reference");
const spec = await (await fetch(reference.dataset.description)).json();
tellWhereRequestsGo(spec.servers[0].url);
SwaggerUIBundle({
  spec,
  domNode: reference,
  presets: [SwaggerUIBundle.presets.apis],
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  syntaxHighlight: { theme: "obsidian" },
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
