import { hash } from "node:crypto";
import { glob, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { RequestHandler } from "express";
import { zipSync } from "fflate";
import { AppError } from "../platform/api/errors.ts";
import { getRoute, type Route } from "../platform/http/endpoint.ts";
import type { ServedDocument } from "./documents.ts";
import { type Html, html } from "./html.ts";
import { layOut, type Site } from "./layout.ts";
import { pageHeaders } from "./page-headers.ts";
import { serveFile, servePage } from "./serve-file.ts";

export const PACKAGES_PATH = "/docs/packages";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** What partners can install, by name: a description, and the command that installs it. */
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

/** Reads a built package by its name without the version. @throws AppError `not_found`. */
async function readPackage(name: string): Promise<Buffer> {
  const { value: file } = await glob(`dist/${name}-*.tgz`, { cwd: ROOT }).next();
  if (file === undefined) throw new AppError("not_found");
  return readFile(ROOT + file);
}

async function zipBruno(): Promise<Buffer> {
  const files: string[] = [];
  for await (const file of glob("bruno/**/*.*", { cwd: `${ROOT}docs` })) files.push(file);
  const contents = await Promise.all(
    files.toSorted().map(async (file): Promise<[string, Uint8Array]> => [file, await readFile(`${ROOT}docs/${file}`)]),
  );
  // The time is fixed so that the same files always give the same bytes.
  return Buffer.from(zipSync(Object.fromEntries(contents), { mtime: "2000-01-01T00:00:00Z" }));
}

/** The files by name. */
const FILES: Record<string, { type: string; make: () => Promise<Buffer> }> = {
  [BRUNO]: { type: "application/zip", make: zipBruno },
  ...Object.fromEntries(
    Object.keys(PACKAGES).map((name) => [`${name}.tgz`, { type: "application/gzip", make: () => readPackage(name) }]),
  ),
};

/** The SHA-256 of a file, in hex. Null if it is not built. */
async function hashFile(name: string): Promise<string | null> {
  const content = await FILES[name]?.make().catch(() => null);
  return content ? hash("sha256", content, "hex") : null;
}

/** A link to the document about proofs, or only its text if the service has no log and does not serve it. */
const linkProof = ({ basePath }: Site, documents: readonly ServedDocument[]) =>
  documents.some(({ path }) => path === "/docs/proof")
    ? html`<a href="${basePath}/docs/proof#get-the-verifier">Compare a hash</a>`
    : "Compare a hash";

async function renderPage(config: Site, documents: readonly ServedDocument[]): Promise<Html> {
  const address = `${config.baseUrl}${PACKAGES_PATH}`;
  const hashes = new Map<string, Html | null>();
  for (const name of Object.keys(FILES)) {
    const hashed = await hashFile(name);
    hashes.set(name, hashed === null ? null : html`<p>SHA-256: <code>${hashed}</code></p>`);
  }
  return layOut(config, {
    title: "Packages",
    main: html`<article class="document"><h1>Packages</h1>
<p>These packages have no dependencies and need Node 20. They have the version of this service. \
${linkProof(config, documents)} before you trust what a package proves, and keep the package.</p>
${Object.entries(PACKAGES).map(
  ([name, { what, use }]) => html`<h2><a href="${config.basePath}${PACKAGES_PATH}/${name}.tgz">${name}</a></h2>
<p>${what}</p>
<pre><code>${use(`${address}/${name}.tgz`)}</code></pre>
${hashes.get(`${name}.tgz`) ?? null}`,
)}
<h2><a href="${config.basePath}${PACKAGES_PATH}/${BRUNO}">${BRUNO}</a></h2>
<p>A collection for Bruno with one request for each call.</p>
${hashes.get(BRUNO) ?? null}
</article>`,
  });
}

/** The list of packages as a page, and the packages themselves. */
export function packageRoutes(config: Site, documents: readonly ServedDocument[]): Route[] {
  const handlers = new Map<string, RequestHandler>();
  for (const [name, { type, make }] of Object.entries(FILES)) handlers.set(name, serveFile(type, make));
  return [
    getRoute(
      PACKAGES_PATH,
      pageHeaders,
      servePage(() => renderPage(config, documents)),
    ),
    getRoute(`${PACKAGES_PATH}/:fileName`, (request, response, next) => {
      const serve = handlers.get(String(request.params.fileName));
      if (serve === undefined) throw new AppError("not_found");
      return serve(request, response, next);
    }),
  ];
}
