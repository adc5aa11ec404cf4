import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, extname } from "node:path";
import { fileURLToPath } from "node:url";

const { resolve } = createRequire(import.meta.url);

const CONTENT_TYPES: Record<string, string> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** A file that pages load. Its name contains a hash of its content. */
export interface Asset {
  /** The last part of its path. */
  fileName: string;
  contentType: string;
  content: Buffer;
}

function readAsset(path: string, content = readFileSync(path)): Asset {
  const extension = extname(path);
  const contentType = CONTENT_TYPES[extension];
  if (contentType === undefined) throw new Error(`${path} has no content type`);
  const fingerprint = hash("sha256", content).slice(0, 16);
  return { fileName: `${basename(path, extension)}.${fingerprint}${extension}`, contentType, content };
}

/** Reads a file of the folder `static/` beside this module. */
function readStatic(name: string): Asset {
  return readAsset(pathOf(`./static/${name}`));
}

/** Reads the parts of one file. */
function readFiles(...paths: string[]): Buffer<ArrayBuffer> {
  return Buffer.concat(paths.map((path) => readFileSync(path)));
}

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

/** The script of docs/receipt-verifier.html, which a test renders from packages/tlog and static/check-receipt.js. The page has the same. */
function readReceiptScript(): Asset {
  const file = readFileSync(pathOf("../../../docs/receipt-verifier.html"), "utf8");
  const [, script = ""] = /<script type="module">\n(.*)<\/script>/s.exec(file) ?? [];
  return readAsset("check-receipt.js", Buffer.from(script));
}

/** Every file that pages load. */
export const ASSETS = {
  style: readStatic("pages.css"),
  icon: readStatic("icon.svg"),
  copyScript: readStatic("copy.js"),
  chainScript: readAsset(
    "check-chain.js",
    readFiles(...["copy.js", "check-chain.js", "check-payload.js"].map((name) => pathOf(`./static/${name}`))),
  ),
  receiptScript: readReceiptScript(),
  receiptStyle: readStatic("receipt-verifier.css"),
  referenceStyle: readStatic("reference.css"),
  referenceScript: readStatic("reference.js"),
  overviewStyle: readAsset(
    "overview.css",
    readFiles(resolve("uplot/dist/uPlot.min.css"), pathOf("./static/overview.css")),
  ),
  overviewScript: readAsset(
    "overview.js",
    readFiles(resolve("uplot/dist/uPlot.iife.min.js"), pathOf("./static/overview.js")),
  ),
  boardStyle: readStatic("board.css"),
  swaggerStyle: readAsset(resolve("swagger-ui-dist/swagger-ui.css")),
  swaggerScript: readAsset(resolve("swagger-ui-dist/swagger-ui-bundle.js")),
} as const satisfies Record<string, Asset>;

/** The asset with this name, or null. */
export function findAsset(fileName: string): Asset | null {
  return Object.values(ASSETS).find((asset) => asset.fileName === fileName) ?? null;
}
