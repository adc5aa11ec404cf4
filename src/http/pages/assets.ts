import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parse } from "node:path";

/** A file that pages load. Its name contains a hash of its content. */
export interface Asset {
  /** The last part of its path. */
  fileName: string;
  content: Buffer;
}

/** A file with this name. Its content is these parts, by default the file with this name in `static/`. */
function makeAsset(name: string, ...parts: Buffer[]): Asset {
  const content = parts.length === 0 ? readStatic(name) : Buffer.concat(parts);
  const { name: stem, ext } = parse(name);
  return { fileName: `${stem}.${hash("sha256", content).slice(0, 16)}${ext}`, content };
}

function readStatic(name: string): Buffer {
  return readFileSync(new URL(`./static/${name}`, import.meta.url));
}

const { resolve } = createRequire(import.meta.url);

/** Reads a file of an installed package. */
function readInstalled(path: string): Buffer {
  return readFileSync(resolve(path));
}

/** The script of docs/receipt-verifier.html, which a test renders from packages/tlog and static/check-receipt.js. */
function readReceiptScript(): Buffer {
  const file = readFileSync(new URL("../../../docs/receipt-verifier.html", import.meta.url), "utf8");
  return Buffer.from(/<script type="module">\n(.*)<\/script>/s.exec(file)?.[1] ?? "");
}

const chainParts = ["copy.js", "check-chain.js", "check-payload.js"].map(readStatic);

/** Every file that pages load. */
export const ASSETS = {
  style: makeAsset("pages.css"),
  icon: makeAsset("icon.svg"),
  copyScript: makeAsset("copy.js"),
  chainScript: makeAsset("check-chain.js", readReceiptScript(), ...chainParts),
  receiptScript: makeAsset("check-receipt.js", readReceiptScript()),
  referenceStyle: makeAsset(
    "reference.css",
    Buffer.from("@layer pages {\n"),
    readStatic("pages.css"),
    Buffer.from("}\n"),
    readInstalled("swagger-ui-dist/swagger-ui.css"),
    readStatic("reference.css"),
  ),
  referenceScript: makeAsset("reference.js"),
  overviewStyle: makeAsset("overview.css", readInstalled("uplot/dist/uPlot.min.css"), readStatic("overview.css")),
  overviewScript: makeAsset("overview.js", readInstalled("uplot/dist/uPlot.iife.min.js"), readStatic("overview.js")),
  sheetStyle: makeAsset("sheet.css"),
  boardStyle: makeAsset("board.css"),
  swaggerScript: makeAsset("swagger-ui-bundle.js", readInstalled("swagger-ui-dist/swagger-ui-bundle.js")),
} as const satisfies Record<string, Asset>;

/** The asset with this name, or null. */
export function findAsset(fileName: string): Asset | null {
  return Object.values(ASSETS).find((asset) => asset.fileName === fileName) ?? null;
}
