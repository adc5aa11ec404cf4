import { readFileSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { openOperatorTokens } from "../../src/console/sign-in/operator-tokens.ts";
import { CONFIG_PARTS } from "../../src/open/config-parts.ts";
import { readConfig } from "../../src/platform/config.ts";
import { DatabaseClock } from "../../src/platform/db/database-clock.ts";
import { PROVIDERS } from "../support/provider-tokens.ts";
import { makeIssuerKey, secondsFromNow, signClaims, TELLS_NOTHING, writeKeysFile } from "../support/user-tokens.ts";

/** The settings of each provider: the first text in backticks in each cell of the table in docs/sign-in.md. */
const TABLE = readFileSync("docs/sign-in.md", "utf8")
  .split("\n")
  .filter((line) => line.split("|").length === 10)
  .map((line) => line.split("|").slice(1, -1));
const [HEAD = [], , ...ROWS] = TABLE;
const settingsOf = (name: string) => {
  const cells = ROWS.find(([cell]) => cell?.trim() === name)?.slice(1) ?? [];
  const titles = HEAD.slice(1).map((cell) => `OPS_${/`(.*)`/.exec(cell)?.[1]}`);
  const values = cells.map((cell) => /`(.*?)`/.exec(cell)?.[1]);
  return Object.fromEntries(titles.flatMap((title, at) => (values[at] ? [[title, values[at]]] : [])));
};

it("the documents have exactly one row for each tested identity provider", () => {
  expect(ROWS.map(([name]) => name?.trim())).toEqual(PROVIDERS.map(([name]) => name));
});

it.each(
  PROVIDERS,
)("an operator signs in with a token of %s and the documented settings", async (provider, alg, claims, name, role) => {
  const { OPS_JWKS_URL, ...settings } = settingsOf(provider);
  expect(OPS_JWKS_URL).toMatch(/^https:\/\//);
  expect(Object.keys(settings)).toEqual(expect.arrayContaining(["OPS_ISSUER", "OPS_AUDIENCE", "OPS_ROLE_CLAIM"]));
  const key = await makeIssuerKey(alg);
  const file = writeKeysFile(key);
  onTestFinished(() => file.remove());
  const servers = { DATABASE_URL: "postgres://db/x", REDIS_URL: "redis://cache" };
  const { ops } = readConfig({ ...servers, ...settings, OPS_JWKS_URL: file.url }, CONFIG_PARTS);
  const clock = new DatabaseClock(() => performance.now());
  clock.observe({ now: new Date(), trustedAt: null, closedUntil: new Date(0) });
  const tokens = openOperatorTokens(ops, clock, TELLS_NOTHING);
  const sign = (changes: object = {}) => signClaims(key, { ...claims, exp: secondsFromNow(600), ...changes });
  expect(await tokens.authenticate(await sign())).toMatchObject({ name, role });
  await expect(tokens.authenticate(await sign({ iss: "https://other.example" }))).rejects.toThrow();
  await expect(tokens.authenticate(await sign({ aud: "other" }))).rejects.toThrow();
  const claim = Object.hasOwn(claims, ops.roleClaim) ? ops.roleClaim : (/^\/?([^./]+)/.exec(ops.roleClaim)?.[1] ?? "");
  const stranger = { [claim]: ["Billing admin"], ...(claim === "email" && { email: "eve@shop.example" }) };
  expect(await tokens.authenticate(await sign(stranger))).toMatchObject({ role: null });
});

it("a process refuses to start if OPS_ROLE_MAP is malformed or names an unknown role", () => {
  const servers = { DATABASE_URL: "postgres://db/x", REDIS_URL: "redis://cache" };
  const { ops } = readConfig({ ...servers, OPS_ROLE_MAP: "Tills=cashier" }, CONFIG_PARTS);
  expect(() => openOperatorTokens(ops, new DatabaseClock(), TELLS_NOTHING)).toThrow(
    /^OPS_ROLE_MAP gives Tills no role of viewer,/,
  );
  for (const OPS_ROLE_MAP of ["Tills", "=admin", "Tills=", "a=admin,b"])
    expect(() => readConfig({ ...servers, OPS_ROLE_MAP }, CONFIG_PARTS)).toThrow(/^OPS_ROLE_MAP must be pairs/);
});
