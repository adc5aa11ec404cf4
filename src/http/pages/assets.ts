import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { extname } from "node:path";

const DIRECTORY = new URL("./static/", import.meta.url);

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

function readAsset(name: string): Asset {
  const content = readFileSync(new URL(name, DIRECTORY));
  const extension = extname(name);
  const contentType = CONTENT_TYPES[extension];
  if (contentType === undefined) throw new Error(`${name} has no content type`);
  const fingerprint = createHash("sha256").update(content).digest("hex").slice(0, 16);
  return { fileName: `${name.slice(0, -extension.length)}.${fingerprint}${extension}`, contentType, content };
}

/** Everything that pages load. */
export const ASSETS = {
  style: readAsset("pages.css"),
  icon: readAsset("icon.svg"),
  chainScript: readAsset("check-chain.js"),
} as const satisfies Record<string, Asset>;

const BY_NAME = new Map<string, Asset>(Object.values(ASSETS).map((asset) => [asset.fileName, asset]));

/** The asset of that name, or null. */
export function findAsset(fileName: string): Asset | null {
  return BY_NAME.get(fileName) ?? null;
}
