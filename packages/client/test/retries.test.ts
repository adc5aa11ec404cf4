import { afterEach, expect, it, vi } from "vitest";
import { OutcomeUnknown, type Settings, voucherClient } from "../src/index.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

it("the client's retry rule waits a random time, whose maximum doubles up to eight seconds", async () => {
  expect(await waitsOf(failures(5), 0.5)).toEqual([500, 1_000, 2_000, 4_000, 4_000]);
  expect(await waitsOf(failures(5), 0.01)).toEqual([10, 20, 40, 80, 80]);
  expect(await waitsOf(failures(5), 0.999)).toEqual([999, 1_998, 3_996, 7_992, 7_992]);
});

it("the client's retry rule never retries before Retry-After, given in seconds or as a date", async () => {
  expect(await waitsOf([refusal(429, "rate_limited", { "retry-after": "7" })], 0.5)).toEqual([7_500]);
  // Forms of a date, some of which begin or end with a number.
  for (const write of [
    (date: Date) => date.toUTCString(),
    (date: Date) => date.toISOString(),
    (date: Date) => date.toUTCString().replace("GMT", "+0000"),
  ]) {
    const date = write(new Date(Date.now() + 20_000));
    const [waited = 0] = await waitsOf([refusal(503, "unavailable", { "retry-after": date })], 0);
    expect(waited, date).toBeGreaterThan(17_000);
    expect(waited, date).toBeLessThanOrEqual(20_000);
  }
  for (const odd of ["soon", "-5", ""]) {
    expect(await waitsOf([refusal(503, "unavailable", { "retry-after": odd })], 0.5), odd).toEqual([500]);
  }
});

it("the client's retry rule gives up instead of waiting longer than patienceMs", async () => {
  expect(await waitsOf([refusal(429, "too_many_misses", { "retry-after": "3600" })], 0)).toEqual([]);
});

it.each([408, 429, 500, 502, 503, 504, 599])("the client's retry rule retries after status %i", async (status) => {
  expect(await waitsOf([refusal(status, "x")], 0.5)).toEqual([500]);
});

it("the client's retry rule gives up at once if waiting does not help, and says why", async () => {
  for (const code of ["ENOTFOUND", "ERR_SSL_WRONG_VERSION_NUMBER", "DEPTH_ZERO_SELF_SIGNED_CERT"]) {
    const cause = Object.assign(new Error(code), { code });
    expect(await waitsOf([new TypeError("fetch failed", { cause })], 0.5), code).toEqual([]);
  }
});

it("the client's retry rule retries if there is no response", async () => {
  expect(await waitsOf([new TypeError("fetch failed"), new DOMException("late", "TimeoutError")], 0.5)).toEqual([
    500, 1_000,
  ]);
});

it.each([
  ["a page", () => new Response("<h1>Not here</h1>", { status: 404 })],
  ["a redirect", () => new Response(null, { status: 301 })],
  ["an error without a code", () => Response.json({ error: "no" }, { status: 403 })],
  ["a code without a sentence", () => Response.json({ code: "unknown_key" }, { status: 401 })],
  ["a list", () => Response.json([], { status: 409 })],
  ["null", () => Response.json(null, { status: 400 })],
])("the client's retry rule retries after %s, which the service did not send", async (_what, answer) => {
  expect(await waitsOf([answer()], 0.5)).toEqual([500]);
});

it("the client's retry rule does not retry after a status of the service that repeating cannot change", async () => {
  for (const status of [301, 400, 401, 403, 404, 405, 409, 413, 415, 431]) {
    expect(await waitsOf([refusal(status, "x")], 0), String(status)).toEqual([]);
  }
});

it("the client's retry rule ends an attempt without a response after its time limit", async () => {
  const silent: typeof fetch = (_url, options) =>
    new Promise((_resolve, reject) => {
      options?.signal?.addEventListener("abort", () => reject(options.signal?.reason));
    });
  const call = client({ fetch: silent, timeoutMs: 20, patienceMs: 0 }).lookUp("any");
  await expect(call).rejects.toMatchObject({ name: "OutcomeUnknown", cause: { name: "TimeoutError" } });
});

it("the client does not repeat the creation of a webhook after an attempt without a response", async () => {
  let asked = 0;
  const lost: typeof fetch = async () => {
    asked += 1;
    throw new TypeError("fetch failed");
  };
  const created = client({ fetch: lost }).webhooks.create({ url: "https://partner.example/" });
  await expect(created).rejects.toThrow(OutcomeUnknown);
  expect(asked).toBe(1);
});

it("the client sends key and JSON, removes slashes at the address's end and follows no redirect", async () => {
  const sent: [url: string, options: RequestInit | undefined][] = [];
  const answering: typeof fetch = async (url, options) => {
    sent.push([String(url), options]);
    return Response.json({});
  };
  await client({ fetch: answering }).reserve("any");
  await client({ fetch: answering }).lookUp("any");
  const common = { cache: "no-store", redirect: "manual", signal: expect.any(AbortSignal) };
  const headers = { "X-Api-Key": "pvk_1", Accept: "application/json" };
  expect(sent).toStrictEqual([
    [
      "https://vouchers.example/api/partner/vouchers/reserve",
      {
        ...common,
        method: "POST",
        headers: { ...headers, "Content-Type": "application/json" },
        body: '{"code":"any"}',
      },
    ],
    ["https://vouchers.example/api/partner/vouchers/any", { ...common, method: "GET", headers }],
  ]);
});

it("the client's error for a refusal has the service's code, sentence and request id", async () => {
  const answer = client({ fetch: async () => refusal(404, "voucher_not_found") }).lookUp("any");
  await expect(answer).rejects.toMatchObject({
    message: "voucher_not_found.",
    status: 404,
    code: "voucher_not_found",
    requestId: "r-1",
  });
});

/** The error that a call without time for retries throws after this response. */
const errorAfter = (answer: Response | Error, settings: Partial<Settings> = {}) =>
  client({ fetch: async () => answerWith(answer), patienceMs: 0, ...settings })
    .lookUp("any")
    .catch((error: unknown) => error);

it.each([
  ...["request_timeout", "rate_limited", "too_many_misses", "redeem_timeout", "voucher_busy", "overloaded"],
])("the client throws VoucherRefused if the service refused all attempts of a call with %s", async (code) => {
  expect(await errorAfter(refusal(503, code))).toMatchObject({ name: "VoucherRefused", code });
});

it("the client throws OutcomeUnknown with the cause after any failure that proves no outcome", async () => {
  const unknown = { name: "OutcomeUnknown", message: "No final response from the service" };
  for (const answer of [refusal(503, "unavailable"), new Response("", { status: 502 })])
    expect(await errorAfter(answer)).toMatchObject({ ...unknown, cause: { name: "VoucherRefused" } });
  const lost = new TypeError("fetch failed");
  expect(await errorAfter(lost)).toMatchObject({ ...unknown, cause: lost });
  const page = {
    name: "VoucherRefused",
    message: "The address answered 418.",
    status: 418,
    code: null,
    requestId: null,
  };
  expect(await errorAfter(new Response("<h1>Teapot</h1>", { status: 418 }))).toMatchObject({ ...unknown, cause: page });
});

it("the client marks a refusal that came after an attempt without a response", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  const answers = [new TypeError("fetch failed"), refusal(503, "overloaded"), refusal(409, "voucher_used")];
  const call = client({ fetch: async () => answerWith(answers.shift() as Response | Error) }).lookUp("any");
  await expect(call).rejects.toMatchObject({ code: "voucher_used", afterLostAttempt: true });
  expect(answers).toEqual([]);
});

it("the client gives up a call after one minute, and an attempt after fifteen seconds", async () => {
  const limits = vi.spyOn(AbortSignal, "timeout");
  const busy = (seconds: string) => waitsOf([refusal(429, "rate_limited", { "retry-after": seconds })], 0);
  expect([await busy("60"), await busy("61")]).toEqual([[60_000], []]);
  expect(new Set(limits.mock.calls.flat())).toEqual(new Set([15_000]));
});

/** The waits between attempts, if the attempts get these responses in turn. `random` replaces the random number. */
async function waitsOf(answers: (Response | Error)[], random: number): Promise<number[]> {
  vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
  vi.spyOn(Math, "random").mockReturnValue(random);
  const at: number[] = [];
  const replying: typeof fetch = async () => {
    at.push(performance.now());
    const answer = answers[at.length - 1] ?? Response.json({ ticket: "rsv_1" });
    return answerWith(answer);
  };
  const reserved = client({ fetch: replying })
    .reserve("any")
    .catch((error) => error);
  await vi.advanceTimersByTimeAsync(120_000);
  await reserved;
  return at.slice(1).map((time, index) => Math.round(time - (at[index] ?? 0)));
}

/** Returns a response, or throws the error of a lost response. */
function answerWith(answer: Response | Error): Response {
  if (answer instanceof Error) throw answer;
  return answer;
}

const failures = (count: number) => Array.from({ length: count }, () => refusal(500, "internal_error"));

function client(settings: Partial<Settings>) {
  return voucherClient({ baseUrl: "https://vouchers.example/api//", apiKey: "pvk_1", ...settings });
}

function refusal(status: number, code: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error: `${code}.`, code, requestId: "r-1" }, { status, headers });
}
