// Renders the reference from the OpenAPI document of this service. Swagger UI is the global SwaggerUIBundle.

const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

// Gives the elements that Swagger UI leaves unnamed a name for screen readers.
const nameElements = () => {
  for (const choice of document.querySelectorAll("select:not([aria-label])")) {
    choice.setAttribute("aria-label", choice.closest(".servers") ? "Server" : "Example");
  }
  // The previous heading has level 2.
  for (const heading of document.querySelectorAll(".models > h4")) heading.setAttribute("aria-level", "3");
  for (const [part, name] of [
    [".information-container", "About this API"],
    [".schemes-server-container", "Server and keys"],
  ]) {
    const element = document.querySelector(`${part}:not([role])`);
    element?.setAttribute("role", "region");
    element?.setAttribute("aria-label", name);
  }
};
new MutationObserver(nameElements).observe(document.body, { childList: true, subtree: true });

// Shows an operation's path as plain text. The path is in the button that expands the operation, and a button must not
// contain another control. The page's address names the expanded operation.
const plainPaths = () => ({
  wrapComponents: {
    DeepLink:
      (Link, { React }) =>
      (props) =>
        props.path.includes("/") ? React.createElement("span", null, props.text) : React.createElement(Link, props),
  },
});

const reference = document.querySelector("#reference");
// Swagger UI has its own main element.
const frame = Object.assign(document.createElement("div"), { id: "main" });
frame.append(...reference.parentElement.childNodes);
document.querySelector("main").replaceWith(frame);
const spec = await (await fetch(reference.dataset.description)).json();
showOtherOrigin(spec.servers[0].url);
SwaggerUIBundle({
  spec,
  domNode: reference,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [plainPaths],
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  syntaxHighlight: { theme: "obsidian" },
  // No request goes to another site, and no key is kept after the page is closed.
  validatorUrl: null,
  persistAuthorization: false,
});

/**
 * If the API's server has another origin, shows a link to it, because the browser does not let this page call other
 * origins.
 */
function showOtherOrigin(server) {
  if (new URL(server).origin === location.origin) return;
  const notice = document.querySelector("#elsewhere");
  const link = notice.querySelector("a");
  link.href = `${server}/docs`;
  link.textContent = server;
  notice.hidden = false;
}
