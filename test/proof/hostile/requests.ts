import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { ENDPOINTS } from "../../../src/open/endpoints.ts";

/** A request as bytes. Texts are Latin-1: one character is one byte on the wire. */
export interface HostileRequest {
  method: string;
  target: string;
  headers: readonly (readonly [name: string, value: string])[];
  body: Uint8Array | null;
  /** The chunk size in bytes. Null sends the body as a whole, with its length. */
  chunkBytes: number | null;
}

/** Valid values, so that fuzzed requests pass the first checks. */
export interface KnownValues {
  keys: readonly string[];
  /** All codes, tickets and ids. */
  names: readonly string[];
  /** Authorization headers of users, operators and partners. */
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

const word = (text: string) => fc.constantFrom(...text.split(" "));
/** Usually the first arbitrary. */
const mostly = <T>(arbitrary: fc.Arbitrary<T>, ...others: fc.Arbitrary<T>[]) =>
  fc.oneof({ weight: 6, arbitrary }, ...others);

/** Names with a special meaning in JavaScript. */
const prototypeName = word("__proto__ constructor prototype toString hasOwnProperty valueOf then");
const fieldsOf = (part: "body" | "query") => [
  ...new Set(ENDPOINTS.flatMap((one) => Object.keys(one[part]?.shape ?? {}))),
];
const bodyField = fc.constantFrom(...fieldsOf("body"));

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
    "../../..",
  ),
  longText,
);

/** Makes an object as text, which may contain duplicate keys and huge numbers. */
const objectOf = (key: fc.Arbitrary<string>, value: fc.Arbitrary<string>) =>
  fc
    .array(fc.tuple(key, value), { maxLength: 6 })
    .map((pairs) => `{${pairs.map(([name, of]) => `${name}:${of}`).join(",")}}`);

function jsonText(known: KnownValues): fc.Arbitrary<string> {
  const text = fc.oneof(anyText, fc.constantFrom(...known.names)).map((value) => JSON.stringify(value));
  const escaped = fc.constantFrom('"\\u0000"', '"\\ud800"', '"\\udfff\\ud800"', '"\\u0001"', '"\\/"', '"\\x"', '"\n"');
  const number = fc.oneof(word("0 -0 1e999 -1e999 1e-999 0.1 9007199254740993 01"), fc.constant("1".repeat(400)));
  const literal = word("null true false NaN undefined [] {}");
  const deep = fc
    .tuple(fc.integer({ min: 1, max: 7_000 }), fc.constantFrom("[", '{"a":'))
    .map(([depth, open]) => open.repeat(depth) + (open === "[" ? "]" : "1}").repeat(depth).replace(/^1?/, "1"));
  const key = mostly(bodyField, prototypeName, anyText).map((name) => JSON.stringify(name));
  const { value } = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      { weight: 6, arbitrary: text },
      ...[escaped, number, literal, deep],
      fc.array(tie("value"), { maxLength: 3 }).map((values) => `[${values.join(",")}]`),
      objectOf(key, tie("value")),
    ),
  }));
  return objectOf(key, value);
}

function anyBody(known: KnownValues): fc.Arbitrary<Uint8Array> {
  const value = fc.oneof(fc.constantFrom(...known.names), anyText, fc.constantFrom(null));
  const wellFormed = fc.dictionary(bodyField, value, { maxKeys: 4 }).map((body) => JSON.stringify(body));
  const text = fc.oneof(jsonText(known), wellFormed, fc.json()).map((json) => Buffer.from(json));
  const damaged = fc
    .tuple(text, fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 4 }))
    .map(([bytes, changes]) => {
      const copy = Buffer.from(bytes);
      for (const [at, byte] of changes) if (copy.length > 0) copy[at % copy.length] = byte;
      return copy;
    });
  const changed = fc
    .tuple(
      text,
      fc.constantFrom<((bytes: Buffer) => Uint8Array)[]>(gzipSync, deflateSync, brotliCompressSync, (bytes) =>
        Buffer.from(bytes.toString("utf8"), "utf16le"),
      ),
    )
    .map(([bytes, change]) => change(bytes));
  const long = fc.constantFrom(16_384, 16_385, 200_000).map((size) => Buffer.alloc(size, '{"a":"'));
  const cut = text.map((bytes) => bytes.subarray(0, bytes.length / 2));
  return mostly<Uint8Array>(text, damaged, changed, changed, cut, fc.uint8Array({ maxLength: 200 }), long);
}

/** Texts of Latin-1 characters from `min` on, except DEL and the characters in `without`. */
const latin1 = (min: number, without = "") =>
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
  return mostly(
    fc.constantFrom(...known.names).map(encodeURIComponent),
    anyText.map((text) => encodeURIComponent(text.toWellFormed())),
    percentEncoded,
    latin1(0x21, "/?#"),
    word(".. . %2e%2e %2F..%2F %5c % %zz %c0%80 %ed%a0%80 rsv_%00 * ;a=b"),
    prototypeName,
    fc.constantFrom(1_000, 8_000).map((length) => "a".repeat(length)),
  );
}

function queryText(known: KnownValues): fc.Arbitrary<string> {
  const strange = fc.oneof(prototypeName, word("a[b][c] limit[] __proto__[limit] limit[toString]"));
  const name = mostly(fc.constantFrom(...fieldsOf("query")), strange, segment(known));
  const number = fc.oneof(word("0 1 -1 1e3 1001 2147483648 NaN %00 %ff true"), fc.constantFrom("9".repeat(400), ""));
  const value = fc.oneof(number, segment(known));
  return fc
    .array(fc.tuple(name, value), { maxLength: 4 })
    .map((pairs) => (pairs.length === 0 ? "" : `?${pairs.map(([key, of]) => `${key}=${of}`).join("&")}`));
}

const garbage = latin1(0x20);
const json = "application/json";
const types = [json, `${json}; charset=utf-8`, `${json}; charset=utf-16le`, `${json}; charset=x`, ";;;", "text/plain"];
const forms = ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"];
/** The second token is unsigned: `alg: none`. */
const badTokens = ["a.b.c", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjo5OTk5OTk5OTk5fQ.", "a.".repeat(3_000), ""];
const NAMED_HEADERS: Record<string, fc.Arbitrary<string>> = {
  Authorization: fc.oneof(
    fc.constantFrom(...badTokens).map((token) => `Bearer ${token}`),
    fc.constant("Basic YTpi"),
  ),
  Accept: fc.oneof(word("text/html application/json */* text/html;q=0.1,*/* ,,,;q=x"), fc.constant("a/b".repeat(900))),
  "Content-Type": fc.constantFrom(...types, ...forms),
  "Content-Encoding": fc.constantFrom("gzip", "deflate", "br", "zstd", "identity", "gzip, gzip", "x", ""),
  Cookie: fc.constantFrom("a=b.c", "a", "=;=;=", "__proto__=x", `a=${"%".repeat(500)}`),
  Origin: word("null https://evil.test http:// x http://[::bad"),
  "Sec-Fetch-Site": word("cross-site same-origin none x"),
  Host: fc.constantFrom("x", "", "a:b:c", "[::1", "127.0.0.1@evil.test", "x".repeat(3_000)),
  Range: word("bytes=0-0 bytes=-1 bytes=99999999999- bytes=5-1 bytes=0-0,2-3,0-0 x=1"),
  "If-Match": word('"x" * W/'),
  "If-None-Match": word('"x" * W/'),
  "If-Unmodified-Since": fc.constantFrom("Thu, 01 Jan 1970 00:00:00 GMT", "x"),
  "If-Modified-Since": fc.constantFrom("Thu, 01 Jan 2099 00:00:00 GMT", "x"),
  "X-Request-Id": fc.oneof(garbage, longText),
  "X-Forwarded-For": fc.constantFrom("127.0.0.1", "::ffff:127.0.0.1", "a, b", ",", "999.1.1.1", "1.2.3.4,".repeat(400)),
  "X-Forwarded-Host": word("evil.test a,b [::"),
  "X-Forwarded-Proto": word("https javascript ,"),
  "X-HTTP-Method-Override": word("DELETE x"),
  Traceparent: fc.oneof(garbage, fc.constant(`00-${"0".repeat(32)}-${"0".repeat(16)}-01`)),
  Baggage: garbage,
  Expect: word("100-continue a-miracle"),
  Upgrade: word("websocket h2c"),
  "Accept-Encoding": fc.constantFrom("gzip", "x;q=y", ""),
};

type Header = [name: string, value: string];

function anyHeaders(known: KnownValues): fc.Arbitrary<Header[]> {
  const usual = fc
    .constantFrom(...Object.entries(NAMED_HEADERS))
    .chain(([name, values]) => values.map((value): Header => [name, value]));
  const invented = fc.tuple(fc.oneof(prototypeName, fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/)), garbage);
  const wrong = fc.constantFrom("", "pvk_", "pvk_wrong", "x".repeat(4_000));
  const key = mostly(fc.constantFrom(...known.keys), wrong, garbage).map((value): Header => ["X-Api-Key", value]);
  const signIn = fc.constantFrom(...known.signIns).map((value): Header => ["Authorization", value]);
  const none = fc.constant<Header[]>([]);
  return fc
    .tuple(
      mostly(fc.tuple(key) as fc.Arbitrary<Header[]>, none, fc.tuple(key, key)),
      mostly(fc.tuple(signIn) as fc.Arbitrary<Header[]>, none),
      fc.array(mostly<Header>(usual, invented), { maxLength: 5 }),
    )
    .map((parts) => [["Host", "x"], ...parts.flat()]);
}

const anyMethod = word("GET HEAD POST PUT PATCH DELETE OPTIONS TRACE QUERY PROPFIND");

/** Requests to a path with parameters, such as `/r/:code/claim`, usually with its method and sometimes with another. */
export function requestsTo(path: string, method: string, known: KnownValues): fc.Arbitrary<HostileRequest> {
  const parts = path.split("/").map((part) => (part.startsWith(":") ? segment(known) : fc.constant(part)));
  const target = fc.tuple(...parts).map((segments) => segments.join("/"));
  return requests(mostly(fc.constant(method), anyMethod), target, known);
}

/** Requests to random addresses. */
export function requestsAnywhere(known: KnownValues): fc.Arbitrary<HostileRequest> {
  const path = fc.array(segment(known), { maxLength: 6 }).map((segments) => `/${segments.join("/")}`);
  const whole = word("* // //evil.test/healthz http://evil.test/healthz http://[::bad/ /? /# healthz");
  return requests(anyMethod, mostly(path, whole), known);
}

function requests(method: fc.Arbitrary<string>, path: fc.Arbitrary<string>, known: KnownValues) {
  return fc.record<HostileRequest>({
    method,
    target: fc.tuple(path, queryText(known)).map((both) => both.join("")),
    headers: anyHeaders(known),
    body: fc.option(anyBody(known), { freq: 8 }),
    chunkBytes: fc.option(fc.integer({ min: 1, max: 4_000 }), { freq: 4 }),
  });
}
