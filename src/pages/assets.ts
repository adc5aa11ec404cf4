import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parse } from "node:path";
import { sentencesOfScripts } from "./locale.ts";

/** A file that pages load. Its name contains a hash of its content. */
export interface Asset {
  fileName: string;
  content: Buffer;
}

/** Makes an asset from the given parts, or from the file with this name in `static/` if there are none. */
function makeAsset(name: string, ...parts: string[]): Asset {
  const content = Buffer.from(parts.length === 0 ? readStatic(name) : parts.join(""));
  const { name: stem, ext } = parse(name);
  return { fileName: `${stem}.${hash("sha256", content).slice(0, 16)}${ext}`, content };
}

const readStatic = (name: string) => readFileSync(new URL(`./static/${name}`, import.meta.url), "utf8");
const { resolve } = createRequire(import.meta.url);
const readInstalled = (path: string) => readFileSync(resolve(path), "utf8");

/** The verifier of packages/tlog together with static/check-receipt.js. `npm ci` generates the file. */
export const RECEIPT_VERIFIER = readFileSync(new URL("../../dist/receipt-verifier.html", import.meta.url), "utf8");
const receiptScript = /<script type="module">\n(.*)<\/script>/s.exec(RECEIPT_VERIFIER)?.[1] ?? "";

const chainParts = ["copy.js", "check-chain.js", "check-payload.js"].map(readStatic);

/** Every file that pages load. */
export const ASSETS = {
  style: makeAsset("pages.css"),
  documentStyle: makeAsset("documents.css"),
  icon: makeAsset("icon.svg"),
  copyScript: makeAsset(
    "copy.js",
    `const ENGLISH = ${sentencesOfScripts("en", "copy.")};\n`,
    ...["say.js", "copy.js"].map(readStatic),
  ),
  chainScript: makeAsset("check-chain.js", receiptScript, ...chainParts),
  receiptScript: makeAsset("check-receipt.js", receiptScript),
  referenceStyle: makeAsset(
    "reference.css",
    "@layer pages {\n",
    readStatic("pages.css"),
    "}\n",
    readInstalled("swagger-ui-dist/swagger-ui.css"),
    readStatic("reference.css"),
  ),
  referenceScript: makeAsset("reference.js"),
  operatorStyle: makeAsset("operators.css"),
  overviewStyle: makeAsset("overview.css", readInstalled("uplot/dist/uPlot.min.css"), readStatic("overview.css")),
  overviewScript: makeAsset("overview.js", readInstalled("uplot/dist/uPlot.iife.min.js"), readStatic("overview.js")),
  sheetStyle: makeAsset("sheet.css"),
  swaggerScript: makeAsset("swagger-ui-bundle.js", readInstalled("swagger-ui-dist/swagger-ui-bundle.js")),
} as const satisfies Record<string, Asset>;
