import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { newId } from "../../src/domain/ids.ts";
import { ENDPOINTS } from "../../src/http/endpoints.ts";
import type { IssuedVoucher } from "../../src/services/admin/issue-batch.ts";
import { partnerClient, type Reply, send } from "../support/client.ts";
import { exchange, type RawReply } from "../support/raw-http.ts";
import { dumpRows } from "../support/row-dump.ts";
import { useService } from "../support/use-service.ts";

const BODY_MAX_BYTES = 16 * 1024;

const service = useService();
const { api, servers } = service;
let key: string;
/** Active and not reserved: a request that is wrongly accepted changes it. */
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

/** Nothing that is refused, or unknown, or merely read, writes a row. */
function expectNothingWritten(): void {
  afterEach(async () => expect(await dumpRows(servers.db)).toEqual(before));
}

const url = (path: string) => `${api.url}${path}`;

/** Expects a refusal in the one form that all have. */
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

interface PostRoute {
  path: string;
  /** What would be accepted, and change something. */
  valid: () => Record<string, unknown>;
  /** Every known text field and its longest length in code points. */
  fields: Record<string, number>;
  required: string[];
}

const POST_ROUTES: PostRoute[] = [
  {
    path: "/partner/vouchers/reserve",
    valid: () => ({ code: voucher.code }),
    fields: { code: 256 },
    required: ["code"],
  },
  {
    path: "/partner/vouchers/redeem",
    valid: () => ({ code: voucher.code, externalRef: "bad-input" }),
    fields: { code: 256, ticket: 256, externalRef: 128, token: 128, note: 500 },
    required: ["externalRef"],
  },
  {
    path: "/partner/vouchers/release",
    valid: () => ({ ticket }),
    fields: { ticket: 256, reason: 200 },
    required: ["ticket"],
  },
];

describe.each(POST_ROUTES)("POST $path refuses and writes nothing:", ({ path, valid, fields, required }) => {
  expectNothingWritten();
  const post = (body: unknown, headers: Record<string, string> = {}) => send("POST", url(path), { key, body, headers });

  it("text that is no JSON object with 400 invalid_json", async () => {
    const texts = [
      "code=7Q4K",
      '{"code":"7Q4K',
      '{"code":"7Q4K"} x',
      '{"code":"7Q4K",}',
      '{"code":"7Q\u00004K"}',
      "   ",
    ];
    for (const body of [...texts, '[{"code":"7Q4K"}]', "[]", '"7Q4K-9MZX-2HTB-W8RC"', "null", "17", "true"]) {
      expectError(await post(body), 400, "invalid_json");
    }
  });

  it("no body, an empty body, an empty object and null with 400 naming what is missing", async () => {
    const missing = required[0] ?? "";
    expectError(await post({ ...valid(), [missing]: null }), 400, "invalid_request", missing);
    expectError(await send("POST", url(path), { key }), 400, "invalid_request", missing);
    for (const body of ["", "{}", " {} "]) expectError(await post(body), 400, "invalid_request", missing);
    const chunked = `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Api-Key: ${key}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`;
    expectError(await exchange(api.url, chunked), 400, "invalid_request", missing);
  });

  it("each field of another type with 400 naming it", async () => {
    for (const field of Object.keys(fields)) {
      for (const value of [0, 17, 1.5, true, false, [], ["x"], {}, { toString: "x" }]) {
        expectError(await post({ ...valid(), [field]: value }), 400, "invalid_request", `${field} must be a string`);
      }
    }
  });

  it("each field that is too long with 400 naming it, counted in code points", async () => {
    for (const [field, max] of Object.entries(fields)) {
      for (const symbol of ["x", "😀"]) {
        const value = symbol.repeat(max + 1);
        expectError(await post({ ...valid(), [field]: value }), 400, "invalid_request", field);
      }
    }
  });

  it("NUL and lone surrogates in any field, known or not, as a value, inside one or as a name, with 400", async () => {
    for (const bad of ["\\u0000", "\\ud800", "\\udfff", "\\udc00\\ud800", "x\\ud83dx", "fine\\u0000"]) {
      const base = JSON.stringify(valid()).slice(1, -1);
      for (const field of [...Object.keys(fields), "unknown"]) {
        const known = base.includes(`"${field}"`);
        const body = known
          ? `{${base.replace(new RegExp(`"${field}":"[^"]*"`), `"${field}":"${bad}"`)}}`
          : `{${base},"${field}":"${bad}"}`;
        expectError(await post(body), 400, "invalid_request", field);
      }
      for (const inside of [`["a","${bad}"]`, `{"a":{"b":[[{"c":"${bad}"}]]}}`, `{"${bad}":1}`]) {
        expectError(await post(`{${base},"unknown":${inside}}`), 400, "invalid_request", "unknown");
      }
      expectError(await post(`{${base},"${bad}":1}`), 400, "invalid_request");
    }
  });

  it("bytes that are no UTF-8 with 400 invalid_json", async () => {
    for (const bytes of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0x80]]) {
      const json = JSON.stringify({ ...valid(), unknown: "@" });
      const [head = "", tail = ""] = json.split("@");
      const body = Buffer.concat([Buffer.from(head), Buffer.from(bytes), Buffer.from(tail)]);
      expectError(await post(body), 400, "invalid_json");
    }
  });

  it("a body in another charset than UTF-8, declared or not, with 415 or 400", async () => {
    const json = JSON.stringify(valid());
    expectError(await post(Buffer.from(`\ufeff${json}`, "utf16le")), 400, "invalid_json");
    const typed = (charset: string) => ({ "content-type": `application/json; charset=${charset}` });
    for (const charset of ["latin1", "iso-8859-1", "windows-1252", "x-nonsense", "utf8", "utf-16", "UTF-32", "utf-7"]) {
      expectError(await post(json, typed(charset)), 415, "unsupported_encoding");
      expectError(await post("", typed(charset)), 415, "unsupported_encoding");
    }
    const swapped = Buffer.from(json, "utf16le").swap16();
    for (const [charset, body] of [
      ["utf-16le", Buffer.from(json, "utf16le")],
      ["UTF-16BE", swapped],
      ["utf-16", Buffer.concat([Buffer.from([0xfe, 0xff]), swapped])],
    ] as const) {
      expectError(await post(body, typed(charset)), 415, "unsupported_encoding");
      const packed = { ...typed(charset), "content-encoding": "gzip" };
      expectError(await post(gzipSync(body), packed), 415, "unsupported_encoding");
    }
  });

  it("a body that begins with a byte order mark with 400", async () => {
    const marked = `\ufeff${JSON.stringify(valid())}`;
    for (const type of ["application/json", "application/json; charset=UTF-8", "text/plain"]) {
      expectError(await post(marked, { "content-type": type }), 400, "invalid_json");
    }
    expectError(await post(gzipSync(marked), { "content-encoding": "gzip" }), 400, "invalid_json");
  });

  it("a body above 16 KiB with 413, whether its length is told or not", async () => {
    for (const size of [BODY_MAX_BYTES + 1, 2 * BODY_MAX_BYTES, 3_000_000]) {
      const json = JSON.stringify({ ...valid(), pad: "" });
      const body = json.replace('"pad":""', `"pad":"${"x".repeat(size - json.length)}"`);
      expect(Buffer.byteLength(body)).toBe(size);
      expectError(await post(body), 413, "body_too_large");
    }
    const chunk = `4800\r\n${"x".repeat(0x4800)}\r\n`;
    const chunked = `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Api-Key: ${key}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`;
    expectError(await exchange(api.url, chunked), 413, "body_too_large");
  });

  it("a compressed body that unpacks to more than 16 KiB with 413", async () => {
    const bomb = JSON.stringify({ ...valid(), pad: "x".repeat(1_000_000) });
    const packed = gzipSync(bomb);
    expect(packed.length).toBeLessThan(BODY_MAX_BYTES);
    expectError(await post(packed, { "content-encoding": "gzip" }), 413, "body_too_large");
    expectError(await post(deflateSync(bomb), { "content-encoding": "deflate" }), 413, "body_too_large");
    expectError(await post(brotliCompressSync(bomb), { "content-encoding": "br" }), 413, "body_too_large");
    expectError(await post(zstdCompressSync(bomb), { "content-encoding": "zstd" }), 413, "body_too_large");
  });

  it("a body that is not compressed as it says with 400, and one compressed in an unknown way with 415", async () => {
    const json = JSON.stringify(valid());
    const packed = gzipSync(json);
    expectError(await post(json, { "content-encoding": "gzip" }), 400, "invalid_json");
    expectError(await post(packed.subarray(0, -12), { "content-encoding": "gzip" }), 400, "invalid_json");
    expectError(await post(packed), 400, "invalid_json");
    expectError(await post(gzipSync(Buffer.from([0xff, 0xfe])), { "content-encoding": "gzip" }), 400, "invalid_json");
    for (const encoding of ["compress", "gzip, gzip", "nonsense"]) {
      expectError(await post(packed, { "content-encoding": encoding }), 415, "unsupported_encoding");
    }
  });

  it("a form, however it is sent, with 400 invalid_json", async () => {
    const form = new URLSearchParams(valid() as Record<string, string>).toString();
    for (const type of ["application/x-www-form-urlencoded", "text/plain", "application/json"]) {
      expectError(await post(form, { "content-type": type }), 400, "invalid_json");
    }
    const multipart = '--x\r\nContent-Disposition: form-data; name="code"\r\n\r\n7Q4K\r\n--x--\r\n';
    expectError(await post(multipart, { "content-type": "multipart/form-data; boundary=x" }), 400, "invalid_json");
  });

  it("fields that stand only on a prototype, as fields that are missing", async () => {
    const hidden = JSON.stringify(valid());
    for (const body of [`{"__proto__":${hidden}}`, `{"constructor":{"prototype":${hidden}}}`]) {
      expectError(await post(body), 400, "invalid_request", required[0] ?? "");
    }
    expect(Object.prototype).not.toHaveProperty("code");
    expect(Object.prototype).not.toHaveProperty("ticket");
  });

  it("nesting as deep as a body allows: a known field for its type, an unknown one for its innermost value", async () => {
    const depth = 8_000;
    const nested = (inner: string) => "[".repeat(depth) + inner + "]".repeat(depth);
    const base = JSON.stringify(valid()).slice(1, -1);
    const field = Object.keys(fields)[0] ?? "";
    expectError(await post(`{"${field}":${nested("")}}`), 400, "invalid_request", field);
    expectError(await post(`{${base},"unknown":${nested('"\\u0000"')}}`), 400, "invalid_request", "unknown");
    expectError(await post(`{${base},"unknown":${"[".repeat(depth)}`), 400, "invalid_json");
    expectError(await post(`${"[".repeat(16_000)}`), 400, "invalid_json");
    const objects = `${'{"a":'.repeat(2_000)}"\\ud800"${"}".repeat(2_000)}`;
    expectError(await post(`{${base},"unknown":${objects}}`), 400, "invalid_request", "unknown");
  });

  it("a broken body from a caller without a key for the key, not for the body", async () => {
    for (const body of ["not JSON", "x".repeat(20_000), "{}"]) {
      expectError(await send("POST", url(path), { body }), 401, "missing_key");
    }
  });
});

describe.each(POST_ROUTES)("POST $path takes", ({ path, valid, fields, required }) => {
  /** An answer that shows that the body was read and found well-formed: the voucher or ticket it names does not exist. */
  async function expectUnderstood(body: unknown, headers: Record<string, string> = {}): Promise<void> {
    const reply = await send("POST", url(path), { key, body, headers });
    if (path.endsWith("release")) expect(reply).toMatchObject({ status: 200, body: { released: false } });
    else expectError(reply, 404, "voucher_not_found");
  }
  /** Valid, but about something that does not exist. */
  const harmless = () => ({
    ...valid(),
    ...(path.endsWith("release") ? { ticket: newId("rsv") } : { code: "0000-0000-0000-0000" }),
  });
  expectNothingWritten();

  it("unknown fields of any name and kind, and ignores them", async () => {
    const base = JSON.stringify(harmless()).slice(1, -1);
    const nested = "[".repeat(7_000) + "]".repeat(7_000);
    for (const extra of [
      '"unknown":1',
      '"a":null,"b":[],"c":{"d":[{}]}',
      '"__proto__":{"polluted":true}',
      '"constructor":{"prototype":{"polluted":true}}',
      '"toString":"x","hasOwnProperty":1,"valueOf":null',
      '"":"","\\u0001":"\\u0001"',
      `"deep":${nested}`,
      '"big":123456789012345678901234567890,"tiny":1e-999,"huge":1e999',
      '"😀":"\\ud83d\\ude00"',
    ]) {
      await expectUnderstood(`{${base},${extra}}`);
    }
    expect(Object.prototype).not.toHaveProperty("polluted");
  });

  it("a body of exactly 16 KiB", async () => {
    const json = JSON.stringify({ ...harmless(), pad: "" });
    await expectUnderstood(json.replace('"pad":""', `"pad":"${"x".repeat(BODY_MAX_BYTES - json.length)}"`));
  });

  it("a body that is compressed with gzip or deflate, up to 16 KiB unpacked", async () => {
    const json = JSON.stringify({ ...harmless(), pad: "x".repeat(16_000) });
    await expectUnderstood(gzipSync(json), { "content-encoding": "gzip" });
    await expectUnderstood(deflateSync(json), { "content-encoding": "deflate" });
    await expectUnderstood(json, { "content-encoding": "identity" });
  });

  it("JSON with any Content-Type or none", async () => {
    const json = JSON.stringify(harmless());
    for (const type of ["text/plain", "application/octet-stream", "application/json; charset=UTF-8", "x", ";;;"]) {
      await expectUnderstood(json, { "content-type": type });
    }
    const bare = `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Api-Key: ${key}\r\nContent-Length: ${json.length}\r\n\r\n${json}`;
    expect((await exchange(api.url, bare)).status).toBe(path.endsWith("release") ? 200 : 404);
  });

  it("every text field at its longest, in code points outside the basic plane", async () => {
    for (const [field, max] of Object.entries(fields)) {
      // A code or ticket of such symbols is unknown; anything else goes with a voucher that is.
      const { code: _, ...rest } = harmless() as Record<string, unknown>;
      const base = field === "ticket" ? rest : harmless();
      await expectUnderstood({ ...base, [field]: "😀".repeat(max) });
    }
    expect(required.length).toBeGreaterThan(0);
  });
});

describe("a path", () => {
  expectNothingWritten();
  const get = (path: string) => send("GET", url(path), { key });

  it.each([
    ["10 000 characters after a ticket's prefix", `rsv_${"x".repeat(10_000)}`],
    ["NUL", "7Q4K%009MZX"],
    ["NUL after a ticket's prefix", "rsv_%00"],
    ["a percent sign that encodes nothing", "%zz"],
    ["bytes that are no UTF-8", "%ff"],
    ["bytes that are not UTF-8 after a ticket's prefix", "rsv_%ff"],
    ["an encoded surrogate", "%ED%A0%80"],
    ["full-width digits and Cyrillic letters", encodeURIComponent("７Q4К-9МZХ-2НТВ-W8RС")],
    ["a sharp s, whose upper case is two letters", encodeURIComponent("ßßßßßßßß")],
    ["a soft hyphen and a zero-width space", encodeURIComponent("7Q4K\u00ad9MZX\u200b2HTBW8RC")],
    ["a line break", "7Q4K-9MZX-2HTB-W8RC%0A"],
    ["a slash", "..%2F..%2Fhealthz"],
    ["SQL", encodeURIComponent("' OR '1'='1")],
    ["three characters", "abc"],
    ["hyphens and spaces alone", "-%20-%20-"],
  ])("a path with %s names an unknown code: 404 voucher_not_found", async (_what, code) => {
    expectError(await get(`/partner/vouchers/${code}`), 404, "voucher_not_found");
    expectError(await get(`/partner/vouchers/${code}/events`), 404, "voucher_not_found");
  });

  it("a path with look-alikes of a real code finds nothing, and with its own letters finds it", async () => {
    const client = partnerClient(api.url, key);
    const fullWidth = [...voucher.code]
      .map((c) => (c === "-" ? c : String.fromCharCode(c.charCodeAt(0) + 0xfee0)))
      .join("");
    for (const code of [
      fullWidth,
      `${voucher.code}\u200b`,
      voucher.code.replaceAll("-", "\u2010"),
      `${voucher.code}\0`,
    ]) {
      expectError(await client.lookUp(code), 404, "voucher_not_found");
    }
    expect((await client.lookUp(voucher.code)).status).toBe(200);
  });

  it("a path that cannot be decoded is refused for its key or method first, like every other", async () => {
    for (const path of ["/partner/vouchers/%zz", "/partner/vouchers/%ff/events", "/partner/vouchers/7Q4K%"]) {
      expectError(await send("GET", url(path)), 401, "missing_key");
      expectError(await send("GET", url(path), { key: "pvk_wrong" }), 401, "unknown_key");
      expectError(await send("DELETE", url(path), { key }), 405, "method_not_allowed");
    }
  });

  it.each([
    "/partner",
    "/partner/vouchers/",
    "/partner/vouchers//events",
    "/partner/vouchers/7Q4K/redeem",
    "/PARTNER/vouchers/7Q4K",
    "/integrity/events/VoucherInstance/a/b",
    "/favicon.png",
    "/HEALTHZ",
    "/%zz",
    "/..%2f..%2fetc%2fpasswd",
    "/index.html?<script>alert(1)</script>",
  ])("an unknown path answers 404 not_found in JSON to every method: %s", async (path) => {
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
    // A fixed path is no code.
    expectError(await send("GET", url("/partner/vouchers/reserve/events"), { key }), 404, "voucher_not_found");
  });

  it("a method that browsers do not send is answered in JSON", async () => {
    for (const method of ["TRACE", "PROPFIND", "QUERY", "PURGE", "LINK"]) {
      const raw = `${method} /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
      const reply = await exchange(api.url, raw);
      expectError(reply, 405, "method_not_allowed");
      expect(reply.headers.allow).toBe("GET, HEAD");
    }
  });
});

it("HEAD answers what GET answers, without the body", async () => {
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

it("the body of a GET request is ignored", async () => {
  for (const body of ["{}", "not JSON", '{"code":"x"}', "x".repeat(200_000), '"\\ud800"']) {
    const raw = `GET /partner/vouchers/${voucher.code} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Api-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const { status, text } = await exchange(api.url, raw);
    expect(status).toBe(200);
    expect(JSON.parse(text).voucher.id).toBe(voucher.id);
  }
});

const answered = async (id: string, path = "/healthz") => {
  const { headers } = await send("GET", url(path), { key, headers: { "x-request-id": id } });
  return headers.get("x-request-id");
};

it.each(["a", "A_b.c:d-0", "9".repeat(128)])("a caller's request id is echoed: %s", async (id) => {
  expect(await answered(id)).toBe(id);
  const refused = await send("GET", url("/nowhere"), { headers: { "x-request-id": id } });
  expect(refused.body.requestId).toBe(id);
  expect(refused.headers.get("x-request-id")).toBe(id);
});

it.each([
  "9".repeat(129),
  "",
  "a b",
  "<script>",
  'a"b',
  "a,b",
  "a/b",
  "größe",
  "a\tb",
  "a\\b",
])("a request id of other symbols is replaced: %j", async (id) => {
  expect(await answered(id)).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});

it("a request id that is sent twice is replaced", async () => {
  const raw = "GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: a\r\nX-Request-Id: b\r\n\r\n";
  const reply = await exchange(api.url, raw);
  expectError(reply, 404, "not_found");
  expect(reply.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
});

it("every request without an id gets a new one", async () => {
  const ids = new Set<string | null>();
  for (let i = 0; i < 5; i++) ids.add((await send("GET", url("/healthz"))).headers.get("x-request-id"));
  expect(ids.size).toBe(5);
  expect(ids).not.toContain(null);
});

describe("what is not HTTP enough to reach a route", () => {
  expectNothingWritten();
  const post = (headers: string, body: string) =>
    `POST /partner/vouchers/release HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\n${headers}\r\n\r\n${body}`;

  it.each([
    ["no HTTP at all", () => "garbage\r\n\r\n"],
    ["an unknown method", () => "FROBNICATE / HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["an unknown version", () => "GET / HTTP/9.9\r\nHost: x\r\n\r\n"],
    ["NUL in the address", () => "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n"],
    ["a header name with a space", () => "GET / HTTP/1.1\r\nHost: x\r\nbro ken: x\r\n\r\n"],
    ["a header value with a control character", () => "GET / HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n"],
    ["a length that is no number", () => post("Content-Length: x", "{}")],
    ["two lengths", () => post("Content-Length: 2\r\nContent-Length: 3", "{}")],
    ["a length beside chunks", () => post("Content-Length: 2\r\nTransfer-Encoding: chunked", "0\r\n\r\n")],
    ["a broken chunk size", () => post("Transfer-Encoding: chunked", "zz\r\n{}\r\n0\r\n\r\n")],
  ])("the API answers 400 invalid_http in JSON to %s", async (_what, bytes) => {
    expectError(await exchange(api.url, bytes()), 400, "invalid_http");
  });

  it("a request without Host answers 400 in JSON", async () => {
    const reply = await exchange(api.url, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");
    expect(reply.status).toBe(400);
    expect(Object.keys(JSON.parse(reply.text))).toEqual(["error", "code", "requestId"]);
    expect(reply.headers["x-request-id"]).toBe(JSON.parse(reply.text).requestId);
  });

  it("the API answers in JSON to an Expect header that it cannot meet", async () => {
    const raw = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: a-miracle\r\n\r\n";
    const reply = await exchange(api.url, raw);
    expect([200, 417]).toContain(reply.status);
    expect(JSON.parse(reply.text)).toBeTypeOf("object");
    expect(reply.headers["x-request-id"]).toEqual(expect.any(String));
  });

  it("the API answers in JSON to addresses in absolute form and to ones that no URL parser takes", async () => {
    for (const target of ["http://x/nowhere", "http://[::bad/healthz", "http://x:99999999/", "http://a:b@c:d/", "*"]) {
      const raw = `OPTIONS ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
      const reply = await exchange(api.url, raw);
      expect(reply.status, target).toBeGreaterThanOrEqual(400);
      expect(reply.status, target).toBeLessThan(500);
      expect(Object.keys(JSON.parse(reply.text)), target).toEqual(["error", "code", "requestId"]);
      expect(reply.headers["x-request-id"], target).toBe(JSON.parse(reply.text).requestId);
    }
  });

  it("the API answers 431 headers_too_large in JSON when headers or address are too long", async () => {
    const long = "x".repeat(20_000);
    for (const raw of [
      `GET /healthz HTTP/1.1\r\nHost: x\r\nA: ${long}\r\n\r\n`,
      `GET /partner/vouchers/${long} HTTP/1.1\r\nHost: x\r\n\r\n`,
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${Array.from({ length: 2_000 }, (_, i) => `H${i}: x\r\n`).join("")}${"A: b\r\n".repeat(2_000)}\r\n`,
    ]) {
      expectError(await exchange(api.url, raw), 431, "headers_too_large");
    }
  });

  it("a broken request does no harm to other connections", async () => {
    const [broken, fine] = await Promise.all([
      exchange(api.url, "garbage\r\n\r\n"),
      partnerClient(api.url, key).lookUp(voucher.code),
    ]);
    expect({ broken: broken.status, fine: fine.status }).toEqual({ broken: 400, fine: 200 });
  });
});
