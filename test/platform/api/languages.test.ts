import { expect, it } from "vitest";
import { newId } from "../../../src/core/voucher/ids.ts";
import { LANGUAGES, translateInto } from "../../../src/platform/api/sentences.ts";
import { type Reply, send } from "../../support/client.ts";
import { makeOffer, makeReferral } from "../../support/marketplace.ts";
import { makeKey } from "../../support/supply.ts";
import { useService } from "../../support/use-service.ts";
import { signUser } from "../../support/user-tokens.ts";

const service = useService({ users: true, env: { OPS_TOKEN: "operations-token-of-32-characters" } });
const { api, keys, issue } = service;

const redeem = (accepted: string | null, body: unknown) => ask("POST", "/partner/vouchers/redeem", accepted, body);

it.each([
  [null, "en"],
  ["*", "en"],
  ["de", "de"],
  ["de-AT", "de"],
  ["DE-ch", "de"],
  ["nl-BE,nl;q=0.9,en;q=0.8", "nl"],
  ["en;q=0.5, fr-CA;q=0.9", "fr"],
  ["pt-BR, es-419;q=0.7, en;q=0.1", "es"],
  ["pt, it;q=0.3", "en"],
  ["pt, *;q=0.5", "en"],
  ["de;q=0, fr;q=0.1", "fr"],
  ["de;q=0", "en"],
  ["zh-Hant-TW, fr;q=0.4", "fr"],
  ["", "en"],
  [";;,,=;q=x, -", "en"],
  ["de; q = 0.5", "de"],
  ["de_DE", "de"],
  ["fr_FR.UTF-8, en_US.UTF-8;q=0.5", "fr"],
  ["nl_BE.ISO-8859-15@euro", "nl"],
  [`${"xx,".repeat(200)}de`, "en"],
] as const)("a reader with Accept-Language %j gets a refusal in %s", async (accepted, language) => {
  const { code } = await issue();
  expect((await service.till.redeem({ code, externalRef: `first-${code}` })).status).toBe(200);
  const { status, body, headers } = await redeem(accepted, { code, externalRef: `second-${code}` });
  expect({ status, code: body.code }).toEqual({ status: 409, code: "voucher_used" });
  expect(body.error).toBe(translateInto(language)("errors.voucher_used"));
  expect(headers.get("content-language")).toBe(language);
  expect(headers.get("vary")).toMatch(/\baccept-language\b/i);
});

it.each(
  LANGUAGES,
)("unknown codes and other organizations' codes get the same bytes in the language %s", async (language) => {
  const { code: known } = await issue();
  const answers = new Set<string>();
  for (const code of [known, "7Q4K-9MZX-2HTB-W8RC", newId("rsv")]) {
    const response = await fetch(`${api.url}/partner/vouchers/${code}`, {
      headers: { "x-api-key": keys.foreign.key, "accept-language": language, "x-request-id": "same" },
    });
    expect(response.status).toBe(404);
    const kept = [...response.headers].filter(([name]) => !/^(date|ratelimit)$/.test(name));
    answers.add(JSON.stringify([kept, await response.text()]));
  }
  expect(answers.size).toBe(1);
  expect([...answers][0]).toContain(JSON.stringify(translateInto(language)("errors.voucher_not_found")).slice(1, -1));
});

it("a release that ends no reservation has a reason in the request's language; others have no text", async () => {
  const { code } = await issue();
  const { ticket } = (await service.till.reserve(code)).body;
  const release = (accepted: string) => ask("POST", "/partner/vouchers/release", accepted, { ticket });
  const done = await release("es");
  expect(done.body).toEqual({ released: true });
  expect(done.headers.get("content-language")).toBeNull();
  const nothing = await release("es");
  expect(nothing.body).toEqual({ released: false, reason: translateInto("es")("nothingReleased") });
  expect([nothing.headers.get("content-language"), nothing.headers.get("vary")]).toEqual(["es", "Accept-Language"]);
});

it("a successful redeem has neither Content-Language nor Vary", async () => {
  const { code } = await issue();
  const { status, headers } = await redeem("de", { code, externalRef: "no-words" });
  expect(status).toBe(200);
  expect([headers.get("content-language"), headers.get("vary")]).toEqual([null, null]);
});

/** Requests with every kind of wrong input, and the fields that each answer must name. */
const WRONG: [method: string, path: string, body: unknown, named: readonly string[]][] = [
  ["POST", "/partner/vouchers/redeem", {}, ["externalRef", "code", "ticket"]],
  ["POST", "/partner/vouchers/redeem", { code: "a", ticket: "b" }, ["externalRef", "code", "ticket"]],
  [
    "POST",
    "/partner/vouchers/redeem",
    { externalRef: "..", code: 5, note: "x".repeat(501) },
    ["externalRef", "code", "note"],
  ],
  ["POST", "/partner/vouchers/redeem", { externalRef: "a\nb", ticket: "" }, ["externalRef", "ticket"]],
  ["POST", "/partner/vouchers/redeem", { externalRef: "a", code: "a\0" }, ["code"]],
  ["POST", "/partner/vouchers/redeem", { externalRef: "a", code: "b", averylongnameofafield: "\0" }, []],
  ["POST", "/partner/vouchers/redeem", { externalRef: "a", code: "b", "\0": "" }, []],
  ["POST", "/partner/vouchers/reserve", {}, ["code"]],
  ["POST", "/partner/vouchers/release", { reason: "x".repeat(201) }, ["ticket", "reason"]],
  ["GET", "/partner/redemptions?from=today&limit=0&cursor=x&cursor=y", undefined, ["from", "limit", "cursor"]],
  ["GET", "/partner/redemptions?from=1999-01-01T00:00:00Z&to=2026-01-01T00:00:00+01:00", undefined, ["from", "to"]],
  ["GET", "/partner/redemptions?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", undefined, ["from", "to"]],
  ["GET", "/partner/redemptions?cursor=x", undefined, ["cursor"]],
  ["GET", "/partner/redemptions/receipt", undefined, ["externalRef"]],
  ["POST", "/partner/webhooks", { url: 5, eventTypes: ["x"], description: 1 }, ["url", "eventTypes", "description"]],
  ["POST", "/partner/webhooks/whk_1/replay", {}, ["eventIds", "from", "to"]],
  ["POST", "/partner/webhooks/whk_1/replay", { eventIds: [], from: "now" }, ["eventIds", "from"]],
  ["GET", "/partner/webhooks/whk_1/deliveries?state=new&limit=x", undefined, ["state", "limit"]],
  ["GET", "/marketplace/listings?limit=1000", undefined, ["limit"]],
  ["GET", "/integrity/events/VoucherInstance/vch_1?after=-1&limit=x", undefined, ["after", "limit"]],
];

it.each(WRONG)("%s %s with %j names every wrong field at once, in each language", async (method, path, body, named) => {
  const said = new Set<string>();
  const { organizationId } = service.partner;
  const { key } = await makeKey(service.db, organizationId, {
    scopes: ["voucher.webhook", "voucher.read", "voucher.redeem"],
  });
  for (const language of LANGUAGES) {
    const headers = { "accept-language": language };
    const reply = await send(method, `${api.url}${path}`, { key, headers, ...(body !== undefined && { body }) });
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 400, code: "invalid_request" });
    for (const name of named) expect(reply.body.error).toMatch(new RegExp(`\\b${name}\\b`));
    said.add(reply.body.error);
  }
  expect(said.size).toBe(LANGUAGES.length);
});

it("a marketplace refusal, a missing token and an unknown address are in the reader's language", async () => {
  const headers = { "accept-language": "nl" };
  const token = await signUser(service.issuer, "reader");
  const signedIn = { ...headers, authorization: `Bearer ${token}` };
  const nothing = await send("POST", `${api.url}/products/prd_1/claim`, { headers: signedIn });
  expect(nothing.body.error).toBe(translateInto("nl")("errors.product_not_found"));
  const signedOut = await send("POST", `${api.url}/products/prd_1/claim`, { headers });
  expect(signedOut.body.error).toBe(translateInto("nl")("errors.missing_token"));
  const nowhere = await send("GET", `${api.url}/nowhere`, { headers });
  expect(nowhere.body.error).toBe(translateInto("nl")("errors.not_found"));
  const wrong = await send("PUT", `${api.url}/partner/vouchers/redeem`, { headers });
  expect(wrong.body.error).toBe(translateInto("nl")("errors.method_not_allowed"));
});

it("texts for operators are English, and their responses name English as the language", async () => {
  for (const path of ["/ops", "/ops/queues", "/ops/batches/bat_1"]) {
    const response = await fetch(api.url + path, { headers: { "accept-language": "de", accept: "text/html" } });
    expect(response.status).toBe(401);
    expect(await response.text()).toContain(translateInto("en")("errors.missing_password"));
    expect(response.headers.get("content-language")).toBe("en");
    expect(response.headers.get("vary") ?? "").not.toMatch(/language/i);
  }
});

it("pages for links, listings, histories and checks are in the reader's language, and declare it", async () => {
  const offer = await makeOffer(service.db, 1);
  const link = await makeReferral(service.db, offer);
  const { id } = await issue();
  const pages: Record<string, string> = {
    [`/r/${link.code}`]: "So erhalten Sie den Gutschein",
    "/marketplace/listings": "Marktplatz",
    [`/integrity/events/VoucherInstance/${id}`]: "Dieser Gutschein kann eingelöst werden.",
    [`/integrity/events/VoucherInstance/${id}/history`]: "Verlauf des Gutscheins",
    "/check": "Gutschein prüfen",
    "/r/unknown": translateInto("de")("errors.link_not_found"),
    "/integrity/events/VoucherInstance/vch_1": "Gutschein nicht gefunden",
    "/integrity/events/VoucherInstance/vch_1/history?limit=x": "limit muss eine ganze Zahl von 1 bis",
  };
  for (const [path, words] of Object.entries(pages)) {
    const headers = { accept: "text/html", "accept-language": "de-AT,de;q=0.9,en;q=0.8" };
    const response = await fetch(api.url + path, { headers });
    const text = await response.text();
    expect(text, path).toContain(words);
    expect(text, path).toContain('<html lang="de">');
    expect([response.headers.get("content-language"), response.headers.get("vary")], path).toEqual([
      "de",
      "Accept, Accept-Language",
    ]);
    const plain = await (await fetch(api.url + path, { headers: { accept: "text/html" } })).text();
    expect(plain, path).toContain('<html lang="en">');
    expect(plain, path).not.toContain(words);
  }
});

it("POST /check answers 400 to a text that names no voucher, in the reader's language", async () => {
  const headers = { accept: "text/html", "accept-language": "de" };
  const body = new URLSearchParams({ voucher: "x" });
  const refused = await fetch(`${api.url}/check`, { method: "POST", headers, body });
  expect([refused.status, refused.headers.get("content-language")]).toEqual([400, "de"]);
  expect(await refused.text()).toContain("Das ist weder ein Prüflink");
});

it("an Accept or Accept-Language header that is too long is ignored", async () => {
  const { id } = await issue();
  const path = `/integrity/events/VoucherInstance/${id}`;
  const get = async (headers: Record<string, string>) => {
    const { headers: answered } = await fetch(api.url + path, { headers });
    return [answered.get("content-type")?.split(";")[0], answered.get("content-language")];
  };
  const padded = (preference: string, bytes: number) => preference.padEnd(bytes, ",a/b;q=0.1");
  expect(await get({ accept: padded("text/html", 500), "accept-language": "de" })).toEqual(["text/html", "de"]);
  expect(await get({ accept: padded("text/html", 501) })).toEqual(["application/json", null]);
  const long = { accept: "text/html", "accept-language": padded("de", 251) };
  expect(await get(long)).toEqual(["text/html", "en"]);
});

/** Sends a partner's request with this Accept-Language header, or without the header for null. */
function ask(method: string, path: string, accepted: string | null, body?: unknown, id = "languages"): Promise<Reply> {
  const headers = { "x-request-id": id, ...(accepted !== null && { "accept-language": accepted }) };
  return send(method, `${api.url}${path}`, { key: keys.till.key, headers, ...(body !== undefined && { body }) });
}
