import { expect, it } from "vitest";
import { send } from "../../support/client.ts";
import { useService } from "../../support/use-service.ts";

const SHOP = "https://shop.example";
const LOCAL = "http://localhost:5173";

// The first API allows two origins, the second none.
const service = useService({ apis: [{ CORS_ORIGINS: `${SHOP}, ${LOCAL}` }, {}], workers: [] });
const { api, keys } = service;
const closed = service.apis[1];
/** Routes that pages of a listed origin may call, with the method. */
const OPEN: [method: string, path: string][] = [
  ["GET", "/marketplace/listings"],
  ["GET", "/marketplace/listings/lst_1"],
  ["POST", "/marketplace/listings/lst_1/buy"],
  ["POST", "/products/prd_1/buy"],
  ["POST", "/products/prd_1/claim"],
  ["POST", "/r/abc/claim"],
  ["GET", "/integrity/events/VoucherInstance/vch_1"],
  ["GET", "/integrity/events/VoucherInstance/vch_1/1/proof"],
];

it.each(OPEN)("CORS headers let a page of a listed origin call %s %s, and read even errors", async (method, path) => {
  for (const origin of [SHOP, LOCAL]) {
    const asked = await preflight(api.url + path, origin, method);
    expect(asked.status).toBe(204);
    expect(Object.fromEntries(asked.headers)).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET,HEAD,POST",
      "access-control-allow-headers": "Authorization,Content-Type,X-Request-Id",
      "access-control-max-age": "600",
      vary: "Origin",
    });
    expect(asked.headers.has("access-control-allow-credentials")).toBe(false);

    const { headers } = await send(method, api.url + path, { headers: { origin } });
    expect(headers.get("access-control-allow-origin")).toBe(origin);
    expect(headers.get("access-control-expose-headers")).toContain("Retry-After");
    expect(headers.get("vary")).toMatch(/\bOrigin\b/);
  }
});

/** Routes that no page may call. */
const NEVER: [method: string, path: string][] = [
  ["GET", "/partner/vouchers/7Q4K-9MZX-2HTB-W8RC"],
  ["POST", "/partner/vouchers/redeem"],
  ["GET", "/readyz"],
  ["GET", "/nowhere"],
];

it.each(NEVER)("a page of a listed origin gets no CORS header for %s %s", async (method, path) => {
  const asked = await preflight(api.url + path, SHOP, method);
  expect(asked.status).toBeGreaterThanOrEqual(404);
  expect(corsOf(asked.headers)).toEqual([]);
  const { headers } = await send(method, api.url + path, { key: keys.till.key, headers: { origin: SHOP } });
  expect(corsOf(headers)).toEqual([]);
});

const OTHERS = `https://evil.example http://shop.example https://shop.example.evil.example https://shop.example:8443
  https://sub.shop.example HTTPS://SHOP.EXAMPLE null`.split(/\s+/);

it.each([
  ...OTHERS,
  `${SHOP}, ${LOCAL}`,
  "",
])("a page of an unlisted origin gets Vary for caches, but no CORS header: Origin: %s", async (origin) => {
  for (const [method, path] of OPEN) {
    const asked = await preflight(api.url + path, origin, method);
    expect({ status: asked.status, cors: corsOf(asked.headers) }).toEqual({ status: 405, cors: [] });
    const { headers } = await send(method, api.url + path, { headers: { origin } });
    expect([corsOf(headers), headers.get("vary")]).toEqual([[], expect.stringMatching(/\bOrigin\b/)]);
  }
});

it("no page gets a CORS header from a service without CORS_ORIGINS", async () => {
  for (const [method, path] of OPEN) {
    expect((await preflight(closed.url + path, SHOP, method)).status).toBe(405);
    const { headers } = await send(method, closed.url + path, { headers: { origin: SHOP } });
    expect([corsOf(headers), headers.get("vary") ?? ""]).toEqual([[], expect.not.stringContaining("Origin")]);
  }
});

function corsOf(headers: Headers): string[] {
  return [...headers.keys()].filter((name) => name.startsWith("access-control-"));
}

function preflight(url: string, origin: string, method: string) {
  return fetch(url, {
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": method, "access-control-request-headers": "authorization" },
  });
}
