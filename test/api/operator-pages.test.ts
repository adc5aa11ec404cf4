import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { beforeAll, describe, expect, it } from "vitest";
import { partnerClient } from "../support/client.ts";
import { makeOffer } from "../support/marketplace.ts";
import { startApi, type TestApi } from "../support/service.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const TOKEN = "the token of the operators";
const REFERENCE = "order <7> & Söhne";
const NOTE = "for <b>Mrs Miller</b>";

// Read-only, which is the default, and writable.
const service = useService({ apis: [{}, { OPS_WRITABLE: "true" }], env: { OPS_TOKEN: TOKEN } });
const { api, servers, partner, till } = service;
const writable = service.apis[1];
/** A redeemed voucher, and one with a live reservation. */
let redeemed: { id: string; code: string; ticket: string; redeemCode: string };
let reserved: { id: string; code: string; ticket: string };
let batchId: string;

beforeAll(async () => {
  const [first, second] = await issueVouchers(servers.db, partner, 30);
  if (first === undefined || second === undefined) throw new Error("no vouchers");
  const { ticket } = (await till.reserve(first.code)).body;
  const { redeemCode } = (await till.redeem({ ticket, externalRef: REFERENCE, note: NOTE })).body;
  redeemed = { ...first, ticket, redeemCode };
  reserved = { ...second, ticket: (await till.reserve(second.code)).body.ticket };
  const { rows } = await servers.db.query("SELECT batch_id AS id FROM vouchers WHERE id = $1", [first.id]);
  batchId = rows[0].id;
});

interface Options {
  headers?: Record<string, string>;
  user?: string;
  form?: Record<string, string>;
  at?: TestApi;
}

/** Opens an operator page as a signed-in browser does. */
function open(path: string, { headers = {}, user = "Zoë", form, at = api }: Options = {}) {
  const body = form === undefined ? "" : new URLSearchParams(form).toString();
  return new Promise<{ status: number; location: string | undefined; text: string; policy: string }>(
    (resolve, reject) => {
      const sent = httpRequest(
        `${at.url}/ops${path}`,
        {
          method: form === undefined ? "GET" : "POST",
          headers: {
            accept: "text/html",
            authorization: `Basic ${Buffer.from(`${user}:${TOKEN}`).toString("base64")}`,
            "content-type": "application/x-www-form-urlencoded",
            "content-length": Buffer.byteLength(body),
            ...headers,
          },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk) => {
            text += chunk;
          });
          response.on("end", () => {
            const { location, "content-security-policy": policy } = response.headers;
            resolve({ status: response.statusCode ?? 0, location, text, policy: String(policy) });
          });
        },
      );
      sent.on("error", reject);
      sent.end(body);
    },
  );
}

const search = (words: string) => open(`/vouchers?words=${encodeURIComponent(words)}`);

async function lastEntry() {
  const { rows } = await servers.db.query("SELECT * FROM audit_entries ORDER BY id DESC LIMIT 1");
  return rows[0];
}

describe("the operator pages", () => {
  it("the operator pages ask for the password everywhere and do not exist without OPS_TOKEN", async () => {
    const without = await startApi(servers);
    const paths = [
      "",
      "/vouchers?words=x",
      `/vouchers/${redeemed.id}`,
      `/organizations/${partner.organizationId}`,
      `/batches/${batchId}`,
    ];
    for (const path of [...paths, "/runbook"]) {
      expect((await open(path, { headers: { authorization: "Basic eDp5" } })).status, path).toBe(401);
      expect((await open(path)).status, path).toBeLessThan(400);
      expect((await open(path, { at: without })).status, path).toBe(404);
    }
  });

  it("the operator pages load nothing from elsewhere, send forms to this origin only and contain no script", async () => {
    for (const path of [
      "/organizations",
      `/vouchers/${redeemed.id}`,
      `/organizations/${partner.organizationId}`,
      `/batches/${batchId}`,
      "/runbook",
    ]) {
      const { policy, text } = await open(path);
      expect(policy).toContain("form-action 'self'");
      expect(policy).toContain("default-src 'none'");
      expect(text).not.toMatch(/<script|<style|style=|\son\w+=/);
    }
  });

  it.each<[what: string, words: () => string]>([
    ["code in any spelling", () => ` ${redeemed.code.toLowerCase().replaceAll("-", " ")} `],
    ["id", () => redeemed.id],
    ["verify link", () => `https://vouchers.test/integrity/events/VoucherInstance/${redeemed.id}?after=1`],
    ["ticket", () => redeemed.ticket],
    ["partner's reference", () => REFERENCE],
    ["redeem code", () => redeemed.redeemCode],
    ["batch and serial", () => `${batchId} 1`],
  ])("the operator pages find a voucher by its %s", async (_what, words) => {
    expect(await search(words())).toMatchObject({ status: 303, location: `/ops/vouchers/${redeemed.id}` });
  });

  it.each<[what: string, words: () => string, page: string]>([
    ["an organization", () => partner.organizationId, "organizations"],
    ["a batch", () => ` ${batchId}`, "batches"],
    ["a webhook endpoint", () => "whk_01m7zjmag4eh3rfc1b0q9x4d7e", "webhooks"],
  ])("the operator pages open the page of %s by its id", async (_what, words, page) => {
    expect(await search(words())).toMatchObject({ status: 303, location: `/ops/${page}/${words().trim()}` });
  });

  it("the operator pages find an organization by a part of its name, and list webhook targets and changes", async () => {
    await servers.db.query("UPDATE organizations SET name = 'Grüner Laden' WHERE id = $1", [partner.organizationId]);
    expect((await search("grüner")).text).toContain(`/ops/organizations/${partner.organizationId}`);
    expect((await open("/webhooks")).text).toContain("<h1>Webhooks</h1>");
    const changes = (await open("/audit")).text;
    expect(changes).toContain("<h1>Audit</h1>");
    expect(changes).not.toContain("page voucher");
    expect((await open("/audit?before=1")).text).toContain("There are none.");
    expect((await open("/audit?before=1.5")).status).toBe(400);
  });

  it("the operator pages list the vouchers of all organizations with the same reference, and say when no voucher is found", async () => {
    const other = await makePartner(servers.db);
    const [voucher] = await issueVouchers(servers.db, other, 1);
    const otherTill = partnerClient(api.url, (await makeKey(servers.db, other.organizationId)).key);
    await otherTill.redeem({ code: voucher?.code ?? "", externalRef: REFERENCE });
    const both = await search(REFERENCE);
    expect(both.status).toBe(200);
    expect(both.text).toContain("2 vouchers");
    for (const shown of [redeemed.id, voucher?.id, partner.organizationId, other.organizationId]) {
      expect(both.text).toContain(shown);
    }
    expect(both.text).not.toContain(redeemed.code);
    const none = await search('nothing "><script>');
    expect(none.text).toContain("Nothing found");
    expect(none.text).not.toContain("<script>");
    for (const words of ["", "\0", "x".repeat(5_000), "bat_x 0", "rsv_", "vch_"]) {
      expect((await search(words)).status, JSON.stringify(words)).toBe(200);
    }
  });

  it("the operator pages show a voucher's whole life in order, with everything escaped", async () => {
    const { text } = await open(`/vouchers/${redeemed.id}`);
    const order = ["<strong>Issued</strong>", "<strong>Reserved</strong>", "<strong>Redeemed</strong>"].map((word) =>
      text.indexOf(word),
    );
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(order).not.toContain(-1);
    for (const shown of [
      redeemed.code,
      redeemed.ticket,
      redeemed.redeemCode,
      "Consumed",
      "order &#60;7&#62; &#38; Söhne",
      "Mrs Miller",
    ]) {
      expect(text).toContain(shown);
    }
    expect(text).not.toMatch(/<7>|<b>/);
    const usable = (await open(`/vouchers/${reserved.id}`)).text;
    expect(usable).toContain(`<code>…${reserved.code.slice(-4)}</code>`);
    expect(usable).not.toContain(reserved.code);
    expect((await open("/vouchers/vch_none")).status).toBe(404);
    expect((await open(`/vouchers/${redeemed.code}`)).status).toBe(404);
  });

  it("the operator pages show an organization's last redemptions, newest first and page by page, and how many vouchers of each batch are left", async () => {
    const busy = await makeOffer(servers.db, 40);
    const client = partnerClient(api.url, (await makeKey(servers.db, busy.organizationId)).key);
    for (const [index, { code }] of busy.vouchers.slice(0, 27).entries()) {
      expect((await client.redeem({ code, externalRef: `order-${index}` })).status).toBe(200);
    }
    const first = (await open(`/organizations/${busy.organizationId}`)).text;
    const references = (text: string) => [...text.matchAll(/<td>(order-\d+)<\/td>/g)].map(([, reference]) => reference);
    expect(references(first)).toEqual(Array.from({ length: 25 }, (_, index) => `order-${26 - index}`));
    expect(first).toMatch(new RegExp(`${busy.batchId}</code></a></td><td>Pass</td><td>40</td><td>13</td>`));
    const next =
      /rel="next" href="\/ops([^"]+)"/.exec(first)?.[1]?.replaceAll("&#38;", "&").replaceAll("&amp;", "&") ?? "";
    expect(references((await open(next)).text)).toEqual(["order-1", "order-0"]);
    const batch = (await open(`/batches/${busy.batchId}`)).text;
    expect(batch).toMatch(/<dt>Active<\/dt><dd>13<\/dd>[\s\S]*<dt>Redeemed<\/dt><dd>27<\/dd>/);
    expect((await open("/organizations")).text).toContain(busy.organizationId);
    for (const path of [
      "/organizations/org_none",
      "/organizations/%00",
      "/batches/bat_none",
      `/batches/${"x".repeat(300)}`,
    ]) {
      expect((await open(path)).status, path).toBe(404);
    }
    expect((await open(`/organizations/${busy.organizationId}?redeemedBefore=now`)).status).toBe(400);
  });

  it("head an organization's page with its own name and id, and name its brands, also for one without a brand", async () => {
    await servers.db.query("INSERT INTO organizations (id, name) VALUES ('org_new', 'Söhne & <b>')");
    const text = (await open("/organizations/org_new")).text;
    expect(text).toContain("<h1>Söhne &#38; &#60;b&#62;</h1>");
    expect(text).toMatch(/<dt>Organization<\/dt><dd><code>org_new<.*\n.*<dt>Brands<\/dt><dd>none</);
    const { rows } = await servers.db.query(
      "SELECT o.name, b.name AS brand FROM organizations o JOIN brands b ON b.organization_id = o.id WHERE o.id = $1",
      [partner.organizationId],
    );
    const named = (await open(`/organizations/${partner.organizationId}`)).text;
    expect(named).toContain(`<h1>${rows[0].name}</h1>`);
    expect(named).toMatch(new RegExp(`<dt>Brands</dt><dd><a href="/ops/brands/brd_\\w+"><bdi>${rows[0].brand}</bdi>`));
  });

  it("the operator pages record each view of a partner's data with the operator's name, and record no code", async () => {
    const looks: [path: string, entry: Record<string, unknown>][] = [
      [`/vouchers/${redeemed.id}`, { command: "page voucher", entity_type: "VoucherInstance", entity_id: redeemed.id }],
      [`/organizations/${partner.organizationId}`, { command: "page organization", entity_id: partner.organizationId }],
      [`/batches/${batchId}`, { command: "page batch", entity_type: "Batch", entity_id: batchId }],
      [`/vouchers?words=${encodeURIComponent(REFERENCE)}`, { command: "page search", arguments: { found: 2 } }],
    ];
    for (const [path, entry] of looks) {
      const before = await lastEntry();
      expect((await open(path, { user: "Zoë" })).status).toBe(200);
      const after = await lastEntry();
      expect(Number(after.id)).toBe(Number(before.id) + 1);
      expect(after).toMatchObject({
        os_user: "Zoë",
        host: expect.stringContaining("127.0.0.1"),
        before: null,
        after: null,
        ...entry,
      });
    }
    await search(redeemed.code);
    const { rows } = await servers.db.query(
      "SELECT to_json(a)::text AS text FROM audit_entries AS a WHERE command LIKE 'page %'",
    );
    for (const { text } of rows) expect(text).not.toContain(redeemed.code);
    const before = await lastEntry();
    for (const path of ["", "/runbook", "/vouchers/vch_none"]) await open(path);
    expect((await lastEntry()).id).toBe(before.id);
  });

  it("the operator pages show nothing when the view cannot be recorded", async () => {
    await servers.db.query(
      "ALTER TABLE audit_entries ADD CONSTRAINT refuse_looks CHECK (command NOT LIKE 'page %') NOT VALID",
    );
    try {
      const { status, text } = await open(`/vouchers/${redeemed.id}`);
      expect(status).toBe(500);
      expect(text).not.toContain(redeemed.code);
    } finally {
      await servers.db.query("ALTER TABLE audit_entries DROP CONSTRAINT refuse_looks");
    }
  });

  it("the operator pages have the runbook, where the name of each alert is the anchor of its entry", async () => {
    const { text } = await open("/runbook");
    const rules = readFileSync("docs/observability/prometheus-rules.yml", "utf8");
    const alerts = [...rules.matchAll(/alert: (\w+)/g)].map(([, name]) => name);
    expect(alerts.length).toBeGreaterThan(20);
    expect(alerts.filter((alert) => !text.includes(`<h2 id="${alert}">`))).toEqual([]);
    expect(text).toContain("<strong>Means.</strong>");
    expect(text).not.toMatch(/\*\*|\]\(/);
  });
});

describe("an organization's API keys", () => {
  /** Newest first. */
  let keys: { id: string; key: string }[];
  let path: string;
  const listed = (text: string) => [...text.matchAll(/<code id="(key_\w+)">\1<\/code>/g)].map(([, id]) => id);
  const rowOf = (text: string, id = "") => text.split("<tr>").find((row) => row.includes(`id="${id}"`));

  beforeAll(async () => {
    const { organizationId } = await makePartner(servers.db);
    path = `/organizations/${organizationId}`;
    const made = await Promise.all(Array.from({ length: 27 }, () => makeKey(servers.db, organizationId)));
    keys = made.toSorted((a, b) => (a.id < b.id ? 1 : -1));
  });

  it("an organization's API keys are listed newest first and page by page, without a secret or its hash", async () => {
    const first = (await open(path)).text;
    expect(listed(first)).toEqual(keys.slice(0, 25).map(({ id }) => id));
    const [, next = ""] = /rel="next" href="\/ops([^"#]+)#keys"/.exec(first) ?? [];
    const second = (await open(next)).text;
    expect(listed(second)).toEqual(keys.slice(25).map(({ id }) => id));
    expect(second).not.toContain("keysBefore");
    for (const { key } of keys) {
      expect(first + second).not.toContain(key.slice(4));
      expect(first + second).not.toContain(createHash("sha256").update(key).digest("hex"));
    }
  });

  it("an organization's API keys show label, scopes, last use, and whether each is active, has an end, has expired or is revoked", async () => {
    const [active, ending, expired, revoked] = keys.map(({ id }) => id);
    const change = (set: string, id = "") => servers.db.query(`UPDATE api_keys SET ${set} WHERE id = $1`, [id]);
    await change("label = 'till <7>', created_at = '2026-11-20T10:00:00Z'", active);
    await servers.db.query("INSERT INTO api_key_uses VALUES ($1, '2026-11-22T03:04:05Z')", [active]);
    await change("expires_at = '2099-01-02T03:04:05Z'", ending);
    await change("expires_at = '2026-01-02T03:04:05Z'", expired);
    await change("expires_at = '2026-01-02T03:04:05Z', revoked_at = '2025-11-21T10:00:00Z'", revoked);
    const { text } = await open(path);
    expect(rowOf(text, active)).toMatch(
      /<br>till &#60;7&#62;<\/td><td><span class="badge good">Active<\/span><\/td><td><time [^>]*>22 November 2026, 03:04 UTC<\/time><\/td><td>voucher.read, voucher.redeem<\/td><td><time [^>]*>20 November 2026, 10:00 UTC<\/time>/,
    );
    expect(rowOf(text, ending)).toMatch(
      /<span [^>]*>Active<\/span> until <time [^>]*>2 January 2099[^<]*<\/time><\/td><td>never</,
    );
    expect(rowOf(text, expired)).toMatch(/Expired<\/span> <time [^>]*>2 January 2026, 03:04 UTC/);
    expect(rowOf(text, revoked)).toMatch(/<span class="badge bad">Revoked<\/span> <time [^>]*>21 November 2025/);
  });

  it("an organization's API keys are found by their id, on the page of the organization that lists them", async () => {
    for (const place of [0, 24, 25, 26]) {
      const { id = "" } = keys[place] ?? {};
      const { status, location = "" } = await search(` ${id}`);
      expect(status).toBe(303);
      const [page = "", anchor] = location.split("#");
      expect(anchor).toBe(id);
      expect(page.startsWith(`/ops${path}`)).toBe(true);
      expect(page.includes("?"), page).toBe(place > 24);
      expect(listed((await open(page.slice("/ops".length))).text), String(place)).toContain(id);
    }
  });

  it("an organization's API keys are said to be missing, or to have no organization", async () => {
    const unknown = "key_01jzbq0000e00a4g0g00000001";
    const countSearches = async () =>
      (await servers.db.query("SELECT count(*)::int AS n FROM audit_entries WHERE command = 'page search'")).rows[0].n;
    const before = await countSearches();
    expect(await search(unknown)).toMatchObject({
      status: 404,
      text: expect.stringContaining(`There is no key ${unknown}.`),
    });
    const { id } = await makeKey(servers.db, null);
    const unbound = { status: 404, text: expect.stringContaining(`Key ${id} has no organization`) };
    expect(await search(id)).toMatchObject(unbound);
    expect(await countSearches()).toBe(before + 2);
  });
});

describe("the page of a webhook endpoint", () => {
  const ID = "whk_01jzbq0000e00a4g0g00000001";
  const HOSTILE = `https://shop.example.com/hooks?"><script>alert(1)</script>`;
  const path = `/webhooks/${ID}`;
  const eventTimes = (text: string) =>
    [...text.matchAll(/<td>voucher\.instance\.redeemed (\d+)<br>/g)].map(([, n]) => Number(n));

  beforeAll(async () => {
    await servers.db.query(
      `INSERT INTO webhook_endpoints (id, organization_id, place, url, description, failing_since)
       VALUES ($1, $2, 1, $3, '<b>till</b>', '2026-11-20T10:00:00Z')`,
      [ID, partner.organizationId, HOSTILE],
    );
    // Newest last: 30 delivered, one given up, one that is tried again, and one that waits until that one is finished.
    await servers.db.query(
      `INSERT INTO webhook_deliveries (position, created_at, next_attempt_at, finished_at, sequence, attempts, last_status, endpoint_id,
                                       event_id, voucher_id, event_type, state, last_failure)
       SELECT n, '2026-11-21T00:00:00Z'::timestamptz + n * interval '1 second', CASE WHEN n = 32 THEN now() END,
              CASE WHEN n < 32 THEN now() END, n, CASE WHEN n = 33 THEN 0 WHEN n < 31 THEN 1 ELSE 10 END, CASE WHEN n = 31 THEN 503 WHEN n < 31 THEN 204 END,
              $1, $2 || '-' || n, $2, 'voucher.instance.redeemed', CASE WHEN n < 31 THEN 'Delivered' WHEN n = 31 THEN 'Failed' ELSE 'Pending' END,
              CASE n WHEN 31 THEN 'status' WHEN 32 THEN 'refused_address' END
         FROM generate_series(1, 33) AS n`,
      [ID, redeemed.id],
    );
  });

  it("the page of a webhook endpoint shows its state, what waits, and its deliveries page by page, with everything escaped and no secret", async () => {
    const first = await open(path);
    expect(first.status).toBe(200);
    expect(first.text).toMatch(/<dt>Waiting<\/dt><dd>2 deliveries<\/dd>/);
    expect(first.text).toMatch(/Enabled, failing[\s\S]*20 November 2026, 10:00:00 UTC/);
    expect(first.text).toContain("?&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;");
    expect(first.text).toContain("&#60;b&#62;till");
    expect(first.text).not.toMatch(/<script|<b>|whsec_/);
    expect(eventTimes(first.text)).toEqual(Array.from({ length: 25 }, (_, index) => 33 - index));
    expect(first.text).toMatch(/Failed<\/span><\/td><td>10<\/td><td>503<\/td>/);
    expect(first.text).toMatch(
      /Pending<\/span><br>next <time [^<]*<\/time><\/td><td>10<\/td><td>refused address<\/td>/,
    );
    expect(first.text).toMatch(/Pending<\/span><br>after the voucher's earlier event<\/td><td>0<\/td><td><\/td>/);
    const next = /rel="next" href="\/ops([^"]+)"/.exec(first.text)?.[1]?.replaceAll("&#38;", "&") ?? "";
    expect(eventTimes((await open(next)).text)).toEqual(Array.from({ length: 8 }, (_, index) => 8 - index));
    expect(eventTimes((await open(`${path}?state=Failed`)).text)).toEqual([31]);
    expect(eventTimes((await open(`${path}?state=Pending`)).text)).toEqual([33, 32]);
  });

  it("the page of a webhook endpoint is linked from its organization's page, and records each view", async () => {
    expect((await open(`/organizations/${partner.organizationId}`)).text).toContain(`href="/ops${path}"`);
    const before = await lastEntry();
    await open(path);
    const after = await lastEntry();
    expect(Number(after.id)).toBe(Number(before.id) + 1);
    expect(after).toMatchObject({ command: "page webhook", entity_id: ID });
  });

  it("the page of a webhook endpoint does not exist for unknown and deleted endpoints, and refuses a cursor or a state that does not exist", async () => {
    const deleted = "whk_01jzbq0000e00a4g0g00000002";
    await servers.db.query(
      `INSERT INTO webhook_endpoints (id, organization_id, url, enabled, disabled_reason, disabled_at, deleted_at)
       VALUES ($1, $2, 'https://shop.example.com/', false, 'partner', now(), now())`,
      [deleted, partner.organizationId],
    );
    for (const id of [deleted, "whk_none", "%00", "x".repeat(300)]) {
      expect((await open(`/webhooks/${id}`)).status, id).toBe(404);
    }
    expect((await open(`${path}?cursor=now`)).status).toBe(400);
    expect((await open(`${path}?state=Lost`)).status).toBe(400);
  });
});

it("every page about a sandbox's vouchers marks it, and no page about live ones does", async () => {
  const sandbox = await makePartner(servers.db, { sandbox: true });
  const [voucher] = await issueVouchers(servers.db, sandbox, 1);
  const { rows } = await servers.db.query("SELECT batch_id AS id FROM vouchers WHERE id = $1", [voucher?.id]);
  for (const path of [
    "/organizations",
    `/organizations/${sandbox.organizationId}`,
    `/batches/${rows[0].id}`,
    `/vouchers/${voucher?.id}`,
  ]) {
    expect((await open(path)).text, path).toContain("Sandbox");
  }
  for (const path of [`/organizations/${partner.organizationId}`, `/batches/${batchId}`, `/vouchers/${redeemed.id}`]) {
    expect((await open(path)).text, path).not.toContain("Sandbox");
  }
});

describe("changes on the operator pages", () => {
  const release = (options: Options) =>
    open(`/vouchers/${reserved.id}/release`, { form: { ticket: reserved.ticket }, ...options });
  const isLive = async () => (await till.lookUp(reserved.code)).body.reservation !== null;

  it("changes on the operator pages are refused and not offered unless OPS_WRITABLE is true, and are always refused from pages of other sites", async () => {
    expect((await open(`/vouchers/${reserved.id}`)).text).not.toContain("Release this reservation");
    expect((await release({ at: api })).status).toBe(405);
    expect((await release({ at: writable, headers: { "sec-fetch-site": "cross-site" } })).status).toBe(403);
    expect(await isLive()).toBe(true);
  });

  it("release a live reservation, with an audit entry and a reason in its history", async () => {
    expect((await open(`/vouchers/${reserved.id}`, { at: writable })).text).toContain("Release this reservation");
    expect(await release({ at: writable })).toMatchObject({ status: 303, location: `/ops/vouchers/${reserved.id}` });
    expect(await isLive()).toBe(false);
    expect(await lastEntry()).toMatchObject({ command: "page release", entity_id: reserved.id });
    expect((await open(`/vouchers/${reserved.id}`)).text).toContain("released by an operator");
    expect((await release({ at: writable })).status).toBe(409);
    expect((await release({ at: writable, form: {} })).status).toBe(409);
  });
});
