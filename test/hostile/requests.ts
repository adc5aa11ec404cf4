import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { ENDPOINTS } from "../../src/http/endpoints.ts";

/** A request as bytes. Texts are Latin-1: one character is one byte on the wire. */
export interface HostileRequest {
  method: string;
  target: string;
  headers: readonly (readonly [name: string, value: string])[];
  body: Uint8Array | null;
  /** Chunk size in bytes; null sends the body as a whole, with its length. */
  chunkBytes: number | null;
}

/** Valid values, so that fuzzed requests pass the first checks. */
export interface KnownValues {
  keys: readonly string[];
  /** Codes, tickets and ids of everything. */
  names: readonly string[];
  userTokens: readonly string[];
  /** The Authorization headers for the dashboard and the portal. */
  signIns: readonly string[];
}

/** Encodes a request that asks to close the connection. */
export function encodeRequest({ method, target, headers, body, chunkBytes }: HostileRequest): Buffer {
  const lines = [`${method} ${target} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  const parts: Uint8Array[] = [];
  if (body !== null && chunkBytes === null) {
    lines.push(`Content-Length: ${body.length}`);
    parts.push(body);
  } else if (body !== null && chunkBytes !== null) {
    lines.push("Transfer-Encoding: chunked");
    for (let at = 0; at < body.length; at += chunkBytes) {
      const piece = body.subarray(at, at + chunkBytes);
      parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
    }
    parts.push(Buffer.from("0\r\n\r\n"));
  }
  lines.push("Connection: close", "", "");
  return Buffer.concat([Buffer.from(lines.join("\r\n"), "latin1"), ...parts]);
}

/** Property names with a meaning of their own in JavaScript. */
const PROTOTYPE_NAMES = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "then"];
const BODY_FIELDS = [...new Set(ENDPOINTS.flatMap(({ body }) => Object.keys(body?.shape ?? {})))];
const QUERY_FIELDS = [...new Set(ENDPOINTS.flatMap(({ query }) => Object.keys(query?.shape ?? {})))];

const longText = fc.constantFrom(127, 128, 129, 256, 257, 500, 501, 7_000).map((length) => "x".repeat(length));
const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.string({ unit: "grapheme", maxLength: 30 }),
  // Includes lone surrogates.
  fc.uint16Array({ maxLength: 12 }).map((units) => String.fromCharCode(...units)),
  fc.constantFrom(
    "",
    " ",
    "\0",
    "\ud800",
    "\udc00x",
    "\ufeff",
    "\u202e",
    "' OR '1'='1",
    "{{7*7}}",
    "<script>",
    "../..",
  ),
  longText,
);

/** JSON as text, so that it can contain duplicate keys and huge numbers. */
function jsonText(known: KnownValues): fc.Arbitrary<string> {
  const text = fc.oneof(anyText, fc.constantFrom(...known.names)).map((value) => JSON.stringify(value));
  const escaped = fc.constantFrom('"\\u0000"', '"\\ud800"', '"\\udfff\\ud800"', '"\\u0001"', '"\\/"', '"\\x"', '"\n"');
  const number = fc.constantFrom(
    "0",
    "-0",
    "1e999",
    "-1e999",
    "1e-999",
    "1".repeat(400),
    "0.1",
    "9007199254740993",
    "01",
  );
  const literal = fc.constantFrom("null", "true", "false", "NaN", "undefined", "[]", "{}");
  const deep = fc
    .tuple(fc.integer({ min: 1, max: 7_000 }), fc.constantFrom("[", '{"a":'))
    .map(([depth, open]) => open.repeat(depth) + (open === "[" ? "]" : "1}").repeat(depth).replace(/^1?/, "1"));
  const key = fc
    .oneof({ weight: 6, arbitrary: fc.constantFrom(...BODY_FIELDS) }, fc.constantFrom(...PROTOTYPE_NAMES), anyText)
    .map((name) => JSON.stringify(name));
  const { value } = fc.letrec<{ value: string; object: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      { weight: 6, arbitrary: text },
      escaped,
      number,
      literal,
      deep,
      fc.array(tie("value"), { maxLength: 3 }).map((values) => `[${values.join(",")}]`),
      tie("object"),
    ),
    object: fc
      .array(fc.tuple(key, tie("value")), { maxLength: 5 })
      .map((pairs) => `{${pairs.map(([name, of]) => `${name}:${of}`).join(",")}}`),
  }));
  return fc
    .array(fc.tuple(key, value), { maxLength: 8 })
    .map((pairs) => `{${pairs.map(([name, of]) => `${name}:${of}`).join(",")}}`);
}

/** Bodies of the right form with random values. */
function wellFormedBody(known: KnownValues): fc.Arbitrary<string> {
  const field = fc.constantFrom(...BODY_FIELDS);
  const value = fc.oneof(fc.constantFrom(...known.names), anyText, fc.constantFrom(null));
  return fc.dictionary(field, value, { maxKeys: 4 }).map((body) => JSON.stringify(body));
}

function anyBody(known: KnownValues): fc.Arbitrary<Uint8Array> {
  const text = fc.oneof(jsonText(known), wellFormedBody(known), fc.json()).map((json) => Buffer.from(json));
  const damaged = fc
    .tuple(text, fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 4 }))
    .map(([bytes, changes]) => {
      const copy = Buffer.from(bytes);
      for (const [at, byte] of changes) if (copy.length > 0) copy[at % copy.length] = byte;
      return copy;
    });
  const long = fc.constantFrom(16_384, 16_385, 200_000).map((size) => Buffer.alloc(size, '{"a":"'));
  return fc.oneof(
    { weight: 6, arbitrary: text },
    { weight: 2, arbitrary: damaged },
    fc.uint8Array({ maxLength: 200 }),
    text.map((bytes) => bytes.subarray(0, bytes.length / 2)),
    text.map((bytes) => gzipSync(bytes)),
    text.map((bytes) => deflateSync(bytes)),
    text.map((bytes) => brotliCompressSync(bytes)),
    text.map((bytes) => Buffer.from(bytes.toString("utf8"), "utf16le")),
    long,
  );
}

/** Texts of Latin-1 characters from `min` on, without DEL and those in `without`. */
const latin1 = (min: number, ...without: string[]) =>
  fc
    .array(
      fc.integer({ min, max: 255 }).filter((byte) => byte !== 127 && !without.includes(String.fromCharCode(byte))),
      { maxLength: 40 },
    )
    .map((bytes) => String.fromCharCode(...bytes));

const percentEncoded = fc
  .uint8Array({ maxLength: 20 })
  .map((bytes) => [...bytes].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""));

function segment(known: KnownValues): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...known.names).map(encodeURIComponent) },
    anyText.map((text) => encodeURIComponent(text.toWellFormed())),
    percentEncoded,
    latin1(0x21, "/", "?", "#"),
    fc.constantFrom("..", ".", "%2e%2e", "%2F..%2F", "%5c", "%", "%zz", "%c0%80", "%ed%a0%80", "rsv_%00", "*", ";a=b"),
    fc.constantFrom(...PROTOTYPE_NAMES),
    fc.constantFrom(1_000, 8_000).map((length) => "a".repeat(length)),
  );
}

function queryText(known: KnownValues): fc.Arbitrary<string> {
  const name = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...QUERY_FIELDS) },
    fc.constantFrom(...PROTOTYPE_NAMES, "a[b][c]", "limit[]", "__proto__[limit]", "limit[toString]"),
    segment(known),
  );
  const value = fc.oneof(
    fc.constantFrom("0", "1", "-1", "1e3", "1001", "2147483648", "9".repeat(400), "NaN", "%00", "%ff", "true", ""),
    segment(known),
  );
  return fc
    .array(fc.tuple(name, value), { maxLength: 4 })
    .map((pairs) => (pairs.length === 0 ? "" : `?${pairs.map(([key, of]) => `${key}=${of}`).join("&")}`));
}

function anyHeaders(known: KnownValues): fc.Arbitrary<[string, string][]> {
  const garbage = latin1(0x20);
  const named: Record<string, fc.Arbitrary<string>> = {
    Authorization: fc.oneof(
      fc.constantFrom(...known.userTokens).map((token) => `Bearer ${token}`),
      // An unsigned token (`alg: none`).
      fc.constant("Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjo5OTk5OTk5OTk5fQ."),
      fc.constantFrom(
        "Bearer",
        "Bearer a.b.c",
        "Basic YTpi",
        "Bearer eyJhbGciOiJIUzI1NiJ9.e30.AA",
        `Bearer ${"a.".repeat(3_000)}`,
      ),
    ),
    Accept: fc.constantFrom(
      "text/html",
      "application/json",
      "*/*",
      "text/html;q=0.1,*/*",
      "image/png",
      ",,,;q=x",
      "a/b".repeat(900),
    ),
    "Content-Type": fc.constantFrom(
      "application/json",
      "application/json; charset=utf-8",
      "application/json; charset=utf-16le",
      "application/json; charset=x",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      ";;;",
      "text/plain",
    ),
    "Content-Encoding": fc.constantFrom("gzip", "deflate", "br", "zstd", "identity", "gzip, gzip", "x", ""),
    Cookie: fc.constantFrom("a=b.c", "a", "=;=;=", "__proto__=x", `a=${"%".repeat(500)}`),
    Origin: fc.constantFrom("null", "https://evil.test", "http://", "x", "http://[::bad"),
    "Sec-Fetch-Site": fc.constantFrom("cross-site", "same-origin", "none", "x"),
    Host: fc.constantFrom("x", "", "a:b:c", "[::1", "127.0.0.1@evil.test", "x".repeat(3_000)),
    Range: fc.constantFrom("bytes=0-0", "bytes=-1", "bytes=99999999999-", "bytes=5-1", "bytes=0-0,2-3,0-0", "x=1"),
    "If-Match": fc.constantFrom('"x"', "*", "W/"),
    "If-None-Match": fc.constantFrom('"x"', "*", "W/"),
    "If-Unmodified-Since": fc.constantFrom("Thu, 01 Jan 1970 00:00:00 GMT", "x"),
    "If-Modified-Since": fc.constantFrom("Thu, 01 Jan 2099 00:00:00 GMT", "x"),
    "X-Request-Id": fc.oneof(garbage, longText),
    "X-Forwarded-For": fc.constantFrom(
      "127.0.0.1",
      "::ffff:127.0.0.1",
      "a, b",
      ",",
      "999.1.1.1",
      "1.2.3.4,".repeat(400),
    ),
    "X-Forwarded-Host": fc.constantFrom("evil.test", "a,b", "[::"),
    "X-Forwarded-Proto": fc.constantFrom("https", "javascript", ","),
    "X-HTTP-Method-Override": fc.constantFrom("DELETE", "x"),
    Traceparent: fc.oneof(garbage, fc.constant(`00-${"0".repeat(32)}-${"0".repeat(16)}-01`)),
    Baggage: garbage,
    Expect: fc.constantFrom("100-continue", "a-miracle"),
    Upgrade: fc.constantFrom("websocket", "h2c"),
    "Accept-Encoding": fc.constantFrom("gzip", "x;q=y", ""),
  };
  const usual = fc
    .constantFrom(...Object.keys(named))
    .chain((name) => (named[name] ?? garbage).map((value) => [name, value] as [string, string]));
  const invented = fc.tuple(
    fc.oneof(fc.constantFrom(...PROTOTYPE_NAMES), fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/)),
    garbage,
  );
  const key = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...known.keys) },
    fc.constantFrom("", "pvk_", "pvk_wrong", "x".repeat(4_000)),
    garbage,
  );
  const keyHeader = fc.oneof(
    { weight: 8, arbitrary: key.map((value) => [["X-Api-Key", value]] as [string, string][]) },
    fc.constant([] as [string, string][]),
    fc.tuple(key, key).map((keys) => keys.map((value) => ["x-api-key", value] as [string, string])),
  );
  const token = fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .constantFrom(...known.userTokens.map((value) => `Bearer ${value}`), ...known.signIns)
        .map((value) => [["Authorization", value]] as [string, string][]),
    },
    fc.constant([] as [string, string][]),
  );
  const others = fc.array(fc.oneof({ weight: 3, arbitrary: usual }, invented), { maxLength: 5 });
  return fc
    .tuple(keyHeader, token, others)
    .map(([ofKey, ofToken, rest]) => [["Host", "x"], ...ofKey, ...ofToken, ...rest] as [string, string][]);
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "PROPFIND"];

/** Requests to a path with parameters, such as `/r/:code/claim`: mostly with its methods, sometimes with others. */
export function requestsTo(path: string, methods: readonly string[], known: KnownValues): fc.Arbitrary<HostileRequest> {
  const parts = path.split("/").map((part) => (part.startsWith(":") ? segment(known) : fc.constant(part)));
  const target = fc.tuple(fc.tuple(...parts), queryText(known)).map(([segments, query]) => segments.join("/") + query);
  const method = fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...methods) }, fc.constantFrom(...METHODS));
  return requests(method, target, known);
}

/** Requests to random addresses. */
export function requestsAnywhere(known: KnownValues): fc.Arbitrary<HostileRequest> {
  const path = fc.array(segment(known), { maxLength: 6 }).map((segments) => `/${segments.join("/")}`);
  const whole = fc.constantFrom(
    "*",
    "//",
    "//evil.test/healthz",
    "http://evil.test/healthz",
    "http://[::bad/",
    "/?",
    "/#",
    "healthz",
  );
  const target = fc.oneof({ weight: 8, arbitrary: path }, whole);
  return requests(
    fc.constantFrom(...METHODS),
    fc.tuple(target, queryText(known)).map((both) => both.join("")),
    known,
  );
}

function requests(
  method: fc.Arbitrary<string>,
  target: fc.Arbitrary<string>,
  known: KnownValues,
): fc.Arbitrary<HostileRequest> {
  return fc.record({
    method,
    target,
    headers: anyHeaders(known),
    body: fc.option(anyBody(known), { freq: 8 }),
    chunkBytes: fc.option(fc.integer({ min: 1, max: 4_000 }), { freq: 4 }),
  });
}
