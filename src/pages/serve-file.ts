import { hash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { RequestHandler } from "express";
import Negotiator from "negotiator";
import pLimit from "p-limit";
import type { Html } from "./html.ts";

interface Representations {
  etag: string;
  contents: ReadonlyMap<string, Buffer>;
  /** The encodings by size, smallest first. An encoding that saves less than a tenth comes after `identity`. */
  preferred: readonly string[];
}

/** Compresses one file at a time, because the process's four threads also resolve names for connections. */
const compressing = pLimit(1);

const compressors = {
  // At quality 9, the largest file takes 0.1 s of a thread. Quality 10 takes 1 s and quality 11 takes 2.5 s, and the
  // result is only a tenth smaller.
  br: (content: Buffer) => promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (content: Buffer) => promisify(gzip)(content),
};

/**
 * Serves a public file, which is the same for everyone, with a media type or an extension. The file is made and
 * compressed at the first request, and kept. A caller that already has it gets 304. Never serve a secret this way,
 * because compression reveals secrets through the length of the response.
 */
export function serveFile(
  contentType: string,
  make: () => string | Buffer | Promise<string | Buffer>,
  caching = "no-cache",
): RequestHandler {
  let made: Promise<Representations> | undefined;
  return async (request, response) => {
    made ??= represent(make).catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    const { etag, contents, preferred } = await made;
    response.set({ "Cache-Control": caching, ETag: etag, "X-Content-Type-Options": "nosniff" });
    response.vary("Accept-Encoding");
    // If a caller refuses every encoding, even `identity`, RFC 9110, section 12.4.1, still allows the plain file.
    const encoding = new Negotiator(request).encoding(preferred, { preferred }) ?? "identity";
    if (encoding !== "identity" && !request.fresh) response.setHeader("Content-Encoding", encoding);
    response.type(contentType).send(contents.get(encoding));
  };
}

/** Serves a page that is the same for everyone, as a public file. Like other pages, it is not cached. */
export function servePage(make: () => Html | Promise<Html>): RequestHandler {
  return serveFile("html", async () => (await make()).markup, "no-store");
}

async function represent(make: () => string | Buffer | Promise<string | Buffer>): Promise<Representations> {
  const content = Buffer.from(await make());
  const contents = new Map<string, Buffer>([["identity", content]]);
  for (const [encoding, compress] of Object.entries(compressors)) {
    contents.set(encoding, await compressing(() => compress(content)));
  }
  // A caller prefers the plain file if compression saves less than a tenth, as for packages, because decompressing also
  // takes time.
  const costOf = (encoding: string) => Number(contents.get(encoding)?.length) * (encoding === "identity" ? 0.9 : 1);
  return {
    // The tag is weak because all encodings share it.
    etag: `W/"${hash("sha256", content, "base64url")}"`,
    contents,
    preferred: [...contents.keys()].toSorted((a, b) => costOf(a) - costOf(b)),
  };
}
