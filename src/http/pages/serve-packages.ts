import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { zipSync } from "fflate";
import { AppError } from "../../contract/errors.ts";
import type { ApiContext } from "../../open-api.ts";
import { getRoute, type Route } from "../endpoint.ts";
import { limitAddress } from "../middleware/rate-limit.ts";
import { html } from "./html.ts";
import { layOut } from "./layout.ts";
import { sendPage } from "./offer-page.ts";
import { pageHeaders } from "./page-headers.ts";
import { sendFile } from "./serve-assets.ts";

export const PACKAGES_PATH = "/docs/packages";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** What partners install, by name: what it is, and the command. */
const PACKAGES: Record<string, { what: string; use: (address: string) => string }> = {
  "partner-voucher-client": {
    what: "A typed client for TypeScript and JavaScript, which keeps the retry rule.",
    use: (address) => `npm install ${address}`,
  },
  "partner-voucher-conformance": {
    what: "Runs your own client against a sandbox, with faults, and says what it gets wrong.",
    use: (address) => `npx ${address} --url … --key pvt_… --client "node my-client.mjs" --codes codes.csv`,
  },
  "partner-voucher-tlog": {
    what: "Verifies receipts, and watches the transparency log.",
    use: (address) => `npx ${address} receipt verify order-4711.tlog-proof --policy policy`,
  },
};

const BRUNO = "bruno.zip";

/** The built package that has this file name without its version, or null. `npm ci` builds the packages. */
function readPackage(fileName: string): Buffer | null {
  const name = Object.keys(PACKAGES).find((each) => fileName === `${each}.tgz`);
  const [file] = name === undefined ? [] : globSync(`dist/${name}-*.tgz`, { cwd: ROOT });
  return file === undefined ? null : readFileSync(ROOT + file);
}

/** The Bruno collection of docs/bruno, as a ZIP file. */
function zipBruno(): Buffer {
  const files = globSync("bruno/**/*.*", { cwd: `${ROOT}docs` }).toSorted();
  const read = (file: string): [string, Uint8Array] => [file, readFileSync(`${ROOT}docs/${file}`)];
  // A fixed time, so that the same files give the same bytes.
  return Buffer.from(zipSync(Object.fromEntries(files.map(read)), { mtime: "2000-01-01T00:00:00Z" }));
}

/** The list of packages as a page, and the packages themselves. They are read on the first request. */
export function packageRoutes(ctx: Pick<ApiContext, "config" | "limits">): Route[] {
  const { config } = ctx;
  const address = `${config.baseUrl}${PACKAGES_PATH}`;
  const files = new Map<string, Buffer>();
  const fileOf = (name: string): Buffer => {
    const content = files.get(name) ?? (name === BRUNO ? zipBruno() : readPackage(name));
    if (content === null) throw new AppError("not_found");
    files.set(name, content);
    return content;
  };
  const page = layOut(config, {
    title: "Packages",
    main: html`<article class="document"><h1>Packages</h1>
<p>These packages have no dependencies and need Node 20. They have the version of this service.</p>
${Object.entries(PACKAGES).map(
  ([name, { what, use }]) => html`<h2><a href="${config.basePath}${PACKAGES_PATH}/${name}.tgz">${name}</a></h2>
<p>${what}</p>
<pre><code>${use(`${address}/${name}.tgz`)}</code></pre>`,
)}
<h2><a href="${config.basePath}${PACKAGES_PATH}/${BRUNO}">${BRUNO}</a></h2>
<p>A collection for Bruno with one request for each call.</p>
</article>`,
  });
  return [
    getRoute(PACKAGES_PATH, pageHeaders, limitAddress(ctx), (_request, response) => sendPage(response, 200, page)),
    getRoute(`${PACKAGES_PATH}/:fileName`, limitAddress(ctx), ({ params }, response) => {
      const name = String(params.fileName);
      sendFile(response, name.endsWith(".zip") ? "application/zip" : "application/gzip", fileOf(name));
    }),
  ];
}
