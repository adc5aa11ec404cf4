import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { IssuedVoucher } from "../../../src/acts/issue-batch.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { ENDPOINTS } from "../../../src/open/endpoints.ts";
import { partnerClient, type Reply, send } from "../../support/client.ts";
import { exchange, type RawReply } from "../../support/raw-http.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { useService } from "../../support/use-service.ts";

const BODY_MAX_BYTES = 16 * 1024;

const service = useService({ env: { ISSUER_API: "true" } });
const { api, servers } = service;
let key: string;
/** An Active voucher without a reservation, so that a wrongly accepted request would change it. */
let voucher: IssuedVoucher;
/** A live reservation of the key, on another voucher. */
let ticket: string;
let before: unknown;

beforeAll(async () => {
  key = service.keys.till.key;
  voucher = await service.issue();
  ticket = (await service.till.reserve((await service.issue()).code)).body.ticket;
});

beforeEach(async () => {
  before = await dumpRows(servers.db);
});

interface PostRoute {
  path: string;
  /** Valid bodies of calls that change something. */
  valid: () => Record<string, unknown>;
  /** Every known text field and its maximum length in code points. */
  fields: Record<string, number>;
  required: string;
}

const POST_ROUTES: PostRoute[] = [
  {
    path: "/partner/vouchers/reserve",
    valid: () => ({ code: voucher.code }),
    fields: { code: 256 },
    required: "code",
  },
  {
    path: "/partner/vouchers/redeem",
    valid: () => ({ code: voucher.code, externalRef: "bad-input" }),
    fields: { code: 256, ticket: 256, externalRef: 128, token: 128, note: 500 },
    required: "externalRef",
  },
  {
    path: "/partner/vouchers/release",
    valid: () => ({ ticket }),
    fields: { ticket: 256, reason: 200 },
    required: "ticket",
  },
];

const charset = (name: string) => ({ "content-type": `application/json; charset=${name}` });
const packed = (method: string) => ({ "content-encoding": method });
const utf16 = (json: string) => Buffer.from(json, "utf16le");
const latin1 = (json: string) => Buffer.from(`${json.slice(0, -1)},"unknown":"Köln"}`, "latin1");
const FORM = "code=7Q4K&ticket=rsv_1&externalRef=x";

describe.each(POST_ROUTES)("a field of a request to POST $path", (route) => {
  const { path, valid, fields } = route;
  const { post, expectUnderstood, harmless } = callsOf(route);
  expectNothingWritten();

  it(`POST ${path} refuses a field with another type or too many code points with 400`, async () => {
    for (const [field, max] of Object.entries(fields)) {
      for (const value of [0, 17, 1.5, true, false, [], ["x"], {}, { toString: "x" }]) {
        expectInvalid(await post({ ...valid(), [field]: value }), `${field} must be text`);
      }
      for (const symbol of ["x", "😀"]) {
        expectInvalid(await post({ ...valid(), [field]: symbol.repeat(max + 1) }), field);
      }
    }
  });

  it(`POST ${path} accepts every text field at its maximum length in supplementary characters`, async () => {
    for (const [field, max] of Object.entries(fields)) {
      // The code or ticket in the body belongs to no voucher, so the answer is 404.
      const { code: _, ...rest } = harmless() as Record<string, unknown>;
      const base = field === "ticket" ? rest : harmless();
      await expectUnderstood({ ...base, [field]: "😀".repeat(max) });
    }
  });
});

// The same handler reads the body of every route, so one route shows what the handler does.
const READS_BODY = POST_ROUTES.slice(1, 2);

describe.each(READS_BODY)("a request that POST $path refuses", (route) => {
  const { path, valid, fields, required } = route;
  const { post } = callsOf(route);
  expectNothingWritten();

  it.each(
    Object.entries(REFUSED),
  )(`POST ${path} refuses unreadable bodies with %s, and writes nothing`, async (answer, bodies) => {
    const [status, code = ""] = answer.split(" ");
    for (const [what, body, headers] of bodies) {
      const reply = await post(body(JSON.stringify(valid())), headers);
      expect([what, reply.status]).toEqual([what, Number(status)]);
      expectError(reply, Number(status), code);
    }
  });

  it(`POST ${path} refuses a missing or empty body and null with 400, and names the missing fields`, async () => {
    expectInvalid(await post({ ...valid(), [required]: null }), required);
    expectInvalid(await send("POST", url(path), { key }), required);
    for (const body of ["", "{}", " {} "]) expectInvalid(await post(body), required);
    const headers = [`X-Api-Key: ${key}`, "Transfer-Encoding: chunked"];
    expectInvalid(await sendRaw(`POST ${path}`, headers, "0\r\n\r\n"), required);
    const chunk = `4800\r\n${"x".repeat(0x4800)}\r\n0\r\n\r\n`;
    expectError(await sendRaw(`POST ${path}`, headers, chunk), 413, "body_too_large");
  });

  it(`POST ${path} refuses NUL and lone surrogates in any field with 400`, async () => {
    for (const bad of ["\\u0000", "\\ud800", "\\udfff", "\\udc00\\ud800", "x\\ud83dx", "fine\\u0000"]) {
      for (const field of [...Object.keys(fields), "unknown"]) {
        const body = JSON.stringify({ ...valid(), [field]: "@" }).replace('"@"', `"${bad}"`);
        expectInvalid(await post(body), field);
      }
      const withUnknown = (json: string) => JSON.stringify({ ...valid(), unknown: "@" }).replace('"@"', json);
      for (const inside of [`["a","${bad}"]`, `{"a":{"b":[[{"c":"${bad}"}]]}}`, `{"${bad}":1}`]) {
        expectInvalid(await post(withUnknown(inside)), "unknown");
      }
      expectInvalid(await post(withUnknown(`1,"${bad}":1`)), "");
    }
  });

  it(`POST ${path} treats inherited fields of a prototype as missing`, async () => {
    const hidden = JSON.stringify(valid());
    for (const body of [`{"__proto__":${hidden}}`, `{"constructor":{"prototype":${hidden}}}`]) {
      expectInvalid(await post(body), required);
    }
    expect(Object.prototype).not.toHaveProperty("code");
    expect(Object.prototype).not.toHaveProperty("ticket");
  });

  it(`POST ${path} refuses deep nesting in known and unknown fields`, async () => {
    const nested = (inner: string) => "[".repeat(8_000) + inner + "]".repeat(8_000);
    const objects = `${'{"a":'.repeat(2_000)}"\\ud800"${"}".repeat(2_000)}`;
    const base = JSON.stringify(valid()).slice(1, -1);
    expectInvalid(await post(`{"${required}":${nested("")}}`), required);
    for (const deep of [nested('"\\u0000"'), objects]) {
      expectInvalid(await post(`{${base},"unknown":${deep}}`), "unknown");
    }
  });

  it(`POST ${path} refuses a caller without a key because of the key, even if the body is invalid`, async () => {
    for (const body of ["not JSON", "x".repeat(20_000), "{}"]) {
      expectError(await send("POST", url(path), { body }), 401, "missing_key");
    }
  });
});

describe.each(READS_BODY)("a request that POST $path accepts", (route) => {
  const { path } = route;
  const { expectUnderstood, harmless } = callsOf(route);
  expectNothingWritten();

  it(`POST ${path} ignores unknown fields of any name and kind`, async () => {
    const base = JSON.stringify(harmless()).slice(1, -1);
    for (const extra of [
      '"unknown":1',
      '"a":null,"b":[],"c":{"d":[{}]}',
      '"__proto__":{"polluted":true}',
      '"constructor":{"prototype":{"polluted":true}}',
      '"toString":"x","hasOwnProperty":1,"valueOf":null',
      '"":"","\\u0001":"\\u0001"',
      `"deep":${"[".repeat(7_000)}${"]".repeat(7_000)}`,
      '"big":123456789012345678901234567890,"tiny":1e-999,"huge":1e999',
      '"😀":"\\ud83d\\ude00"',
    ]) {
      await expectUnderstood(`{${base},${extra}}`);
    }
    expect(Object.prototype).not.toHaveProperty("polluted");
  });

  it(`POST ${path} accepts a body of exactly 16 KiB, also compressed, with any Content-Type or none`, async () => {
    const json = bomb(JSON.stringify(harmless()), BODY_MAX_BYTES);
    expect(Buffer.byteLength(json)).toBe(BODY_MAX_BYTES);
    await expectUnderstood(json, packed("identity"));
    await expectUnderstood(gzipSync(json), packed("gzip"));
    await expectUnderstood(deflateSync(json), packed("deflate"));
    for (const type of ["text/plain", "application/octet-stream", "application/json; charset=UTF-8", "x", ";;;"]) {
      await expectUnderstood(json, { "content-type": type });
    }
    const bare = await sendRaw(`POST ${path}`, [`X-Api-Key: ${key}`, `Content-Length: ${json.length}`], json);
    expect(bare.status).toBe(404);
  });

  it(`POST ${path} accepts JSON in UTF-8 with any charset parameter and with a byte order mark`, async () => {
    const json = JSON.stringify({ ...harmless(), unknown: "Köln №" });
    for (const type of [
      ...["utf8", "UTF8", "utf-8", '"utf-8"', '"utf8"', "us-ascii", "latin1", "utf-16", "x-nonsense", '"', ""].map(
        (name) => `application/json; charset=${name}`,
      ),
      ...["application/json;charset=utf-8;v=1", "application/vnd.shop+json; charset=ascii", "text/plain; charset=utf8"],
    ])
      await expectUnderstood(json, { "content-type": type });
    await expectUnderstood(`\ufeff${json}`);
    await expectUnderstood(gzipSync(`\ufeff${json}`), packed("gzip"));
    await expectUnderstood(`\ufeff \r\n\t${json}\n`, charset("utf8"));
    for (const body of ["", "\ufeff"])
      expectError(await send("POST", url(path), { key, body, headers: charset("utf-16") }), 400, "invalid_request");
  });
});

describe("a path", () => {
  expectNothingWritten();
  const get = (path: string) => send("GET", url(path), { key });

  it.each([
    ["10 000 characters after a ticket's prefix", `rsv_${"x".repeat(10_000)}`],
    ["NUL", "7Q4K%009MZX"],
    ["bytes that are no UTF-8", "%ff"],
    ["full-width digits and Cyrillic letters", encodeURIComponent("７Q4К-9МZХ-2НТВ-W8RС")],
    ["a sharp s, whose upper case is two letters", encodeURIComponent("ßßßßßßßß")],
    ["a slash", "..%2F..%2Fhealthz"],
    ["hyphens and spaces alone", "-%20-%20-"],
  ])("a path to a voucher with %s gets 404 voucher_not_found", async (_what, code) => {
    expectError(await get(`/partner/vouchers/${code}`), 404, "voucher_not_found");
    expectError(await get(`/partner/vouchers/${code}/events`), 404, "voucher_not_found");
  });

  it("a path with a code in another alphabet or an impossible character finds no voucher", async () => {
    const { lookUp } = partnerClient(api.url, key);
    const { code } = voucher;
    for (const alike of [`${code}\u0410`, `${code}\u0301`, `\u{1f39f}${code}`, `${code}\0`]) {
      expectError(await lookUp(alike), 404, "voucher_not_found");
    }
  });

  it("a path accepts a voucher code as scanners and keyboards send it", async () => {
    const { lookUp } = partnerClient(api.url, key);
    const { code } = voucher;
    const fullWidth = code.replaceAll(/[^-]/g, (symbol) => String.fromCharCode(symbol.charCodeAt(0) + 0xfee0));
    for (const typed of [
      `${code}\n`,
      `${code}\r\n`,
      `\ufeff${code}`,
      `*${code}*`,
      fullWidth,
      code.replaceAll("-", "\u2013"),
    ])
      expect((await lookUp(typed)).status, JSON.stringify(typed)).toBe(200);
  });

  it("a path that cannot be decoded is refused for a wrong key or method before anything else", async () => {
    for (const path of ["/partner/vouchers/%zz", "/partner/vouchers/%ff/events", "/partner/vouchers/7Q4K%"]) {
      expectError(await send("GET", url(path)), 401, "missing_key");
      expectError(await send("GET", url(path), { key: "pvk_wrong" }), 401, "unknown_key");
      expectError(await send("DELETE", url(path), { key }), 405, "method_not_allowed");
    }
  });

  it.each([
    "/partner",
    "/partner/vouchers/",
    "/PARTNER/vouchers/7Q4K",
    "/%zz",
    "/..%2f..%2fetc%2fpasswd",
    "/index.html?<script>alert(1)</script>",
  ])("an unknown path gets 404 not_found in JSON for every method: %s", async (path) => {
    for (const method of ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      expectError(await send(method, url(path), { key }), 404, "not_found");
    }
    expectError(await send("POST", url(path), { body: "{ not JSON" }), 404, "not_found");
    expect((await send("HEAD", url(path))).status).toBe(404);
  });
});

describe("a wrong method", () => {
  expectNothingWritten();

  it("every endpoint answers 405 with Allow to every other method, and looks up no code", async () => {
    const paths = Map.groupBy(ENDPOINTS, ({ path }) => path.replaceAll(/:\w+/g, "x"));
    for (const [path, endpoints] of paths) {
      const allowed = endpoints.flatMap(({ method }) => (method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()]));
      for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
        if (allowed.includes(method)) continue;
        for (const options of [{ key }, {}]) {
          const reply = await send(method, url(path), options);
          if (method === "HEAD") expect(reply.status).toBe(405);
          else expectError(reply, 405, "method_not_allowed");
          expect(reply.headers.get("allow")?.split(", ").sort()).toEqual(allowed.toSorted());
        }
      }
    }
    // The router takes `reserve` for a code here, because no route with this fixed path has a GET.
    expectError(await send("GET", url("/partner/vouchers/reserve/events"), { key }), 404, "voucher_not_found");
  });

  it("an HTTP method that browsers do not send gets an answer in JSON", async () => {
    for (const method of ["TRACE", "PROPFIND", "QUERY", "PURGE", "LINK"]) {
      const reply = await sendRaw(`${method} /healthz`);
      expectError(reply, 405, "method_not_allowed");
      expect(reply.headers.allow).toBe("GET, HEAD");
    }
  });
});

it("HEAD returns the status and headers of GET, without the body", async () => {
  for (const path of [
    `/partner/vouchers/${voucher.code}`,
    `/partner/vouchers/${voucher.code}/events`,
    `/integrity/events/VoucherInstance/${voucher.id}`,
    "/partner/vouchers/7Q4K-9MZX-2HTB-W8RC",
    "/healthz",
    "/readyz",
    "/nowhere",
  ]) {
    const [head, get] = [await send("HEAD", url(path), { key }), await send("GET", url(path), { key })];
    expect({ status: head.status, body: head.body }).toEqual({ status: get.status, body: null });
    for (const name of ["content-type", "content-length", "cache-control"]) {
      expect(head.headers.get(name), `${name} of ${path}`).toBe(get.headers.get(name));
    }
  }
});

const answered = async (id: string, path = "/healthz") => {
  const { headers } = await send("GET", url(path), { key, headers: { "x-request-id": id } });
  return headers.get("x-request-id");
};

it("a caller's request id is echoed, even in a refusal", async () => {
  for (const id of ["a", "A_b.c:d-0", "9".repeat(128)]) {
    expect(await answered(id)).toBe(id);
    const refused = await send("GET", url("/nowhere"), { headers: { "x-request-id": id } });
    expect([refused.body.requestId, refused.headers.get("x-request-id")]).toEqual([id, id]);
  }
});

it("a caller's request id is replaced if it has unusual characters or is sent twice", async () => {
  const ids = new Set<string | null | undefined>();
  const wrong = ["9".repeat(129), "", "a b", "<script>", 'a"b', "a,b", "a/b", "größe", "a\tb", "a\\b"];
  for (const id of wrong) ids.add(await answered(id));
  ids.add((await sendRaw("GET /nowhere", ["X-Request-Id: a", "X-Request-Id: b"])).headers["x-request-id"]);
  expect(ids.size).toBe(wrong.length + 1);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});

describe("requests that reach no route", () => {
  expectNothingWritten();
  const post = (headers: string, body: string) =>
    `POST /partner/vouchers/release HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\n${headers}\r\n\r\n${body}`;

  it.each([
    ["no HTTP at all", () => "garbage\r\n\r\n"],
    ["an unknown method", () => "FROBNICATE / HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["NUL in the address", () => "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["a header name with a space", () => "GET / HTTP/1.1\r\nHost: x\r\nbro ken: x\r\n\r\n"],
    ["a length beside chunks", () => post("Content-Length: 2\r\nTransfer-Encoding: chunked", "0\r\n\r\n")],
    ["a broken chunk size", () => post("Transfer-Encoding: chunked", "zz\r\n{}\r\n0\r\n\r\n")],
  ])("the API answers 400 invalid_http in JSON to %s", async (_what, bytes) => {
    expectError(await exchange(api.url, bytes()), 400, "invalid_http");
  });

  it("the API answers in JSON to a request without Host or with an unknown Expect header", async () => {
    const bare = await exchange(api.url, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");
    expectError(bare, 400, "invalid_http");
    const reply = await sendRaw("GET /healthz", ["Expect: a-miracle"]);
    expect([200, 417]).toContain(reply.status);
    expect(JSON.parse(reply.text)).toBeTypeOf("object");
    expect(reply.headers["x-request-id"]).toEqual(expect.any(String));
  });

  it("the API answers in JSON to absolute addresses and to addresses that no URL parser accepts", async () => {
    for (const target of ["http://x/nowhere", "http://[::bad/healthz", "http://x:99999999/", "http://a:b@c:d/", "*"]) {
      const reply = await sendRaw(`OPTIONS ${target}`);
      expect([404, 405, 400], target).toContain(reply.status);
      expectError(reply, reply.status, JSON.parse(reply.text).code);
    }
  });

  it("the API treats several slashes at the start of a path as one slash", async () => {
    for (const path of ["//healthz", "///healthz?x=%2F", "http://h//healthz"])
      expect((await sendRaw(`GET ${path}`)).status).toBe(200);
  });

  it("the API answers 431 headers_too_large in JSON if headers or address are too long", async () => {
    const long = "x".repeat(40_000);
    const many = Array.from({ length: 8_000 }, (_, i) => (i < 4_000 ? `H${i}: x\r\n` : "A: b\r\n")).join("");
    for (const raw of [
      `GET /healthz HTTP/1.1\r\nHost: x\r\nA: ${long}\r\n\r\n`,
      `GET /partner/vouchers/${long} HTTP/1.1\r\nHost: x\r\n\r\n`,
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${many}\r\n`,
    ]) {
      expectError(await exchange(api.url, raw), 431, "headers_too_large");
    }
    const twice = `X-Token: ${"x".repeat(14_000)}`;
    expect((await sendRaw("GET /healthz", [twice, twice])).status).toBe(200);
  });
});

/** Expects that no test writes a row: its requests are refused, name unknown entities, or only read. */
function expectNothingWritten(): void {
  afterEach(async () => expect(await dumpRows(servers.db)).toEqual(before));
}

/** Sends a request that no client library would send. `line` is its method and address. */
const sendRaw = (line: string, headers: string[] = [], body = "") =>
  exchange(api.url, [`${line} HTTP/1.1`, "Host: x", "Connection: close", ...headers, "", body].join("\r\n"));

/** Expects a refusal in the common form. */
function expectError(
  reply: Reply | RawReply,
  status: number,
  code: string,
  sentence: string | RegExp = /^\S.+\.$/,
): void {
  if ("text" in reply) expect(reply.text).toMatch(/}\n$/);
  const [body, header] =
    "text" in reply
      ? [JSON.parse(reply.text), (name: string) => reply.headers[name] ?? null]
      : [reply.body, (name: string) => reply.headers.get(name)];
  expect({ status: reply.status, body }).toEqual({
    status,
    body: {
      error: typeof sentence === "string" ? expect.stringContaining(sentence) : expect.stringMatching(sentence),
      code,
      requestId: expect.stringMatching(/^[A-Za-z0-9._:-]{1,128}$/),
    },
  });
  expect(header("x-request-id")).toBe(body.requestId);
  expect(header("content-type")).toBe("application/json; charset=utf-8");
}

const withBytes = (json: string, ...bytes: number[]) =>
  Buffer.concat([Buffer.from(`${json.slice(0, -1)},"unknown":"`), Buffer.from(bytes), Buffer.from('"}')]);

/** Makes a valid body that is too large without compression. */
const bomb = (json: string, size = 1_000_000) => `${json.slice(0, -1)},"pad":"${"x".repeat(size - json.length - 9)}"}`;

type Refused = [what: string, body: (json: string) => string | Buffer, headers?: Record<string, string>];

/** Bodies that every route refuses, made from the JSON of a valid body, by the answer. */
const REFUSED: Record<string, Refused[]> = {
  "400 invalid_json": [
    ["JSON that is cut off", (json) => json.slice(0, -2)],
    ["a raw NUL", () => '{"code":"7Q\u00004K"}'],
    ["blanks", () => "   "],
    ["a list with an object", (json) => `[${json}]`],
    ["a text", () => '"7Q4K-9MZX-2HTB-W8RC"'],
    ["null", () => "null"],
    ...[[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0x80]].map(
      (bytes): Refused => [`bytes that are no UTF-8: ${bytes}`, (json) => withBytes(json, ...bytes)],
    ),
    ["UTF-16 that is not declared", (json) => utf16(`\ufeff${json}`)],
    ["UTF-16 without a mark", utf16],
    ["UTF-16 that is declared as UTF-8", utf16, charset('"utf8"')],
    ["bytes of another charset that is not declared", latin1],
    ["two byte order marks", (json) => `\ufeff\ufeff${json}`],
    ["a byte order mark inside", (json) => `{\ufeff${json.slice(1)}`],
    ["a body that is not compressed as it says", (json) => json, packed("gzip")],
    ["a compressed body that is cut off", (json) => gzipSync(json).subarray(0, -12), packed("gzip")],
    ["a form", () => FORM, { "content-type": "application/x-www-form-urlencoded" }],
    ["a field with lists that do not end", (json) => `${json.slice(0, -1)},"unknown":${"[".repeat(8_000)}`],
  ],
  "413 body_too_large": [
    ...[BODY_MAX_BYTES + 1, 2 * BODY_MAX_BYTES, 3_000_000].map(
      (size): Refused => [`a body of ${size} bytes`, (json) => bomb(json, size)],
    ),
    ["gzip of a large body", (json) => gzipSync(bomb(json)), packed("gzip")],
    ["deflate of a large body", (json) => deflateSync(bomb(json)), packed("deflate")],
    ["brotli of a large body", (json) => brotliCompressSync(bomb(json)), packed("br")],
    ["zstd of a large body", (json) => zstdCompressSync(bomb(json)), packed("zstd")],
  ],
  "415 unsupported_encoding": [
    ...["latin1", "ISO-8859-1", '"windows-1252"', "us-ascii", "x-nonsense"].map(
      (name): Refused => [`bytes of the charset ${name}`, latin1, charset(name)],
    ),
    ["UTF-16, little-endian", utf16, charset("utf-16le")],
    ["UTF-16 with its mark", (json) => utf16(`\ufeff${json}`), charset("utf-16")],
    ["UTF-16, big-endian", (json) => utf16(json).swap16(), charset("UTF-16BE")],
    ["UTF-32", (json) => Buffer.from(Uint32Array.from(Buffer.from(json)).buffer), charset("utf-32le")],
    ["compressed UTF-16", (json) => gzipSync(utf16(json)), { ...charset("utf-16le"), ...packed("gzip") }],
    ["the encoding compress", (json) => gzipSync(json), packed("compress")],
    ["an unknown encoding", (json) => gzipSync(json), packed("nonsense")],
  ],
};

const url = (path: string) => `${api.url}${path}`;

/** Makes calls of a route, and bodies for them. */
function callsOf({ path, valid }: PostRoute) {
  const releases = path.endsWith("release");
  const post = (body: unknown, headers: Record<string, string> = {}) => send("POST", url(path), { key, body, headers });
  return {
    post,
    /** Expects an answer which shows that the API understood the body: the body's voucher or ticket does not exist. */
    async expectUnderstood(body: unknown, headers?: Record<string, string>): Promise<void> {
      const reply = await post(body, headers);
      if (releases) expect(reply).toMatchObject({ status: 200, body: { released: false } });
      else expectError(reply, 404, "voucher_not_found");
    },
    /** A valid body that names an unknown voucher or ticket. */
    harmless: () => ({ ...valid(), ...(releases ? { ticket: newId("rsv") } : { code: "0000-0000-0000-0000" }) }),
  };
}

function expectInvalid(reply: Reply | RawReply, sentence: string): void {
  expectError(reply, 400, "invalid_request", sentence);
}
