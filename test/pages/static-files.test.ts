import { request } from "node:http";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { ASSETS } from "../../src/pages/assets.ts";
import { serveFile } from "../../src/pages/serve-file.ts";
import { useService } from "../support/use-service.ts";

const { api } = useService({ workers: [] });

/** The largest asset. */
const ASSET = ASSETS.swaggerScript;
const SCRIPT = `/assets/${ASSET.fileName}`;

/** Every kind of public file, and two that compression hardly shrinks: a compressed one and one of a few bytes. */
const COMPRESSED = [SCRIPT, "/openapi.json", "/docs/guide", "/docs", "/docs/packages/", "/docs/packages/bruno.zip"];
const SMALL = ["/docs/packages/partner-voucher-tlog.tgz"];

const DECODERS: Record<string, (content: Buffer) => Buffer> = { br: brotliDecompressSync, gzip: gunzipSync };

it.each([
  ...COMPRESSED,
  ...SMALL,
])("%s has the same content in each encoding, and its response names the encoding", async (path) => {
  const plain = await ask(path, {});
  expect([plain.status, plain.headers["content-encoding"]]).toEqual([200, undefined]);
  for (const encoding of ["br", "gzip"]) {
    const { headers, body } = await ask(path, { "accept-encoding": `${encoding}, identity;q=0` });
    expect([headers["content-encoding"], headers["content-length"]]).toEqual([encoding, String(body.length)]);
    expect(DECODERS[encoding]?.(body).equals(plain.body)).toBe(true);
    expect([headers.etag, headers["content-type"]]).toEqual([plain.headers.etag, plain.headers["content-type"]]);
  }
  expect(String(plain.headers.vary)).toContain("Accept-Encoding");
});

it.each([
  ["gzip, deflate, br, zstd", "br"],
  ["*", "br"],
  ["br;q=0.5, gzip;q=0.8", "gzip"],
  ["gzip;q=0, *;q=0.1", "br"],
  ["br;q=0", undefined],
  ["br;q=0.5, identity", undefined],
  ["zstd", undefined],
  ["", undefined],
  ["identity;q=0, *;q=0", undefined],
  ["identity;q=0, gzip;q=0.1", "gzip"],
  ["BR", "br"],
  ["br;q=nonsense, ,;;", undefined],
])("a public file is sent for Accept-Encoding %j with the encoding %s", async (accepted, encoding) => {
  const { status, headers } = await ask(SCRIPT, { "accept-encoding": accepted });
  expect([status, headers["content-encoding"]]).toEqual([200, encoding]);
});

it("a public file is sent uncompressed if no encoding saves a tenth", async () => {
  for (const path of SMALL) {
    const { headers } = await ask(path, { "accept-encoding": "gzip, br" });
    expect([path, headers["content-encoding"]]).toEqual([path, undefined]);
  }
});

it("a public file has the same entity tag in every encoding, and a request with that tag gets 304", async () => {
  const { headers: first } = await ask(SCRIPT, { "accept-encoding": "br" });
  for (const accepted of ["br", "gzip", "identity"]) {
    const condition = { "accept-encoding": accepted, "if-none-match": `"other", ${first.etag}` };
    const { status, headers, body } = await ask(SCRIPT, condition);
    expect([status, body.length, headers["content-encoding"]]).toEqual([304, 0, undefined]);
    expect([headers.etag, headers["cache-control"], headers.vary]).toEqual([
      first.etag,
      first["cache-control"],
      "Accept-Encoding",
    ]);
  }
  expect((await ask(SCRIPT, { "if-none-match": '"other"' })).status).toBe(200);
});

it("a public file answers HEAD with the headers of GET, and a range request with the whole file", async () => {
  for (const accepted of ["br", "identity"]) {
    const [got, head] = [
      await ask(SCRIPT, { "accept-encoding": accepted }),
      await ask(SCRIPT, { "accept-encoding": accepted }, "HEAD"),
    ];
    const named = ({ headers }: typeof got) =>
      ["content-length", "content-encoding", "content-type", "etag", "vary"].map((name) => headers[name]);
    expect([head.status, head.body.length, named(head)]).toEqual([200, 0, named(got)]);
  }
  const { status, body } = await ask(SCRIPT, { range: "bytes=0-9", "if-range": '"x"' });
  expect([status, body.length]).toEqual([200, ASSET.content.length]);
});

it("a public file is compressed once for concurrent requests, and again after a failure", async () => {
  const makes = [() => Promise.reject(new Error("not there yet")), () => "made"];
  let made = 0;
  const serve = serveFile("txt", () => makes[made++]?.() ?? "too often");
  const call = () => {
    const headers: Record<string, string> = {};
    const response = {
      set: () => response,
      vary: () => response,
      type: () => response,
      setHeader: () => response,
      send: (content: Buffer) => void Object.assign(headers, { content: String(content) }),
    };
    return Promise.resolve(serve({ headers: {} } as never, response as never, () => undefined)).then(
      () => headers.content,
    );
  };
  await expect(call()).rejects.toThrow("not there yet");
  expect(await Promise.all([call(), call(), call()])).toEqual(["made", "made", "made"]);
  expect(made).toBe(2);
});

/** Sends a request without the headers that `fetch` adds, and does not decompress the response. */
function ask(path: string, headers: Record<string, string>, method = "GET") {
  return new Promise<{ status?: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    const asked = request(api.url + path, { method, headers, agent: false }, async (response) => {
      const chunks = await response.toArray();
      resolve({ status: response.statusCode as number, headers: response.headers, body: Buffer.concat(chunks) });
    });
    asked.once("error", reject).end();
  });
}
