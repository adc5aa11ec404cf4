import { createHash } from "node:crypto";
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

/** A file that pages load, under a name that changes with its content. */
export interface Asset {
  /** Last part of its path. */
  fileName: string;
  contentType: string;
  content: Buffer;
}

function readAsset(path: string): Asset {
  const content = readFileSync(path);
  const extension = extname(path);
  const contentType = CONTENT_TYPES[extension];
  if (contentType === undefined) throw new Error(`${path} has no content type`);
  const fingerprint = createHash("sha256").update(content).digest("hex").slice(0, 16);
  return { fileName: `${basename(path, extension)}.${fingerprint}${extension}`, contentType, content };
}

/** A file of our own. */
function readOwn(name: string): Asset {
  return readAsset(fileURLToPath(new URL(`./static/${name}`, import.meta.url)));
}

/** Everything that pages load. */
export const ASSETS = {
  style: readOwn("pages.css"),
  icon: readOwn("icon.svg"),
  chainScript: readOwn("check-chain.js"),
  referenceStyle: readOwn("reference.css"),
  referenceScript: readOwn("reference.js"),
  swaggerStyle: readAsset(resolve("swagger-ui-dist/swagger-ui.css")),
  swaggerScript: readAsset(resolve("swagger-ui-dist/swagger-ui-bundle.js")),
} as const satisfies Record<string, Asset>;

const BY_NAME = new Map<string, Asset>(Object.values(ASSETS).map((asset) => [asset.fileName, asset]));

/** The asset of that name, or null. */
export function findAsset(fileName: string): Asset | null {
  return BY_NAME.get(fileName) ?? null;
}
