import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { acceptContract, offerContract } from "../../src/marketplace/acts.ts";
import { countNextActivity } from "../../src/watch/db/activity.ts";
import { basic, browse, type Form, nextOf, OPS_TOKEN } from "../support/browse.ts";
import { partnerClient } from "../support/client.ts";
import { makeOffer, makeReferral } from "../support/marketplace.ts";
import { issueVouchers, makeKey, makePartner, provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const REFERENCE = "order <7> & Söhne";

// Three APIs: read-only by default, writable, and without operator pages.
const service = useService({
  apis: [{ OPS_TOKEN }, { OPS_TOKEN, OPS_WRITABLE: "true" }, {}],
});
const { api, db, partner, stranger, till, foreign } = service;
const [, writable, without] = service.apis;
/** A redeemed voucher, and one with a live reservation. */
let redeemed: { id: string; code: string; ticket: string; redeemCode: string };
let reserved: { id: string; code: string; ticket: string };
let batchId: string;
/** The pages with a partner's data, and the audit entry that a view of each leaves. */
let looks: [path: string, command: string, entityId: string][];

beforeAll(async () => {
  const [first, second] = await issueVouchers(db, partner, 30);
  if (first === undefined || second === undefined) throw new Error("no vouchers");
  const { ticket } = (await till.reserve(first.code)).body;
  const { redeemCode } = (await till.redeem({ ticket, externalRef: REFERENCE, note: "for <b>Mrs Miller</b>" })).body;
  redeemed = { ...first, ticket, redeemCode };
  reserved = { ...second, ticket: (await till.reserve(second.code)).body.ticket };
  const { rows } = await db.query("SELECT batch_id AS id FROM vouchers WHERE id = $1", [first.id]);
  batchId = rows[0].id;
  looks = [
    [`/vouchers/${redeemed.id}`, "page voucher", redeemed.id],
    [`/organizations/${partner.organizationId}`, "page organization", partner.organizationId],
    [`/batches/${batchId}`, "page batch", batchId],
  ];
});

const search = (words: string) => open("/vouchers", { form: { words } });

it("every operator page asks for the password, and no operator page exists without OPS_TOKEN", async () => {
  for (const path of ["", "/vouchers", "/runbook", ...looks.map(([path]) => path)]) {
    expect((await open(path, { headers: basic("y") })).status, path).toBe(401);
    expect((await open(path)).status, path).toBeLessThan(400);
    expect((await open(path, { at: without })).status, path).toBe(404);
  }
});

it("the operator pages contain no script, and load from and send forms to their own origin only", async () => {
  for (const path of ["/organizations", "/runbook", ...looks.map(([path]) => path)]) {
    const { headers, text } = await open(path);
    expect(headers.get("content-security-policy")).toMatch(/default-src 'none'.*form-action 'self'/);
    expect(text).not.toMatch(/<script|<style|style=|\son\w+=/);
  }
});

it("the operator pages find a voucher, organization, batch or endpoint by any name that is unique", async () => {
  const voucher = `/vouchers/${redeemed.id}`;
  const link = `https://vouchers.test/integrity/events/VoucherInstance/${redeemed.id}?after=1`;
  for (const [words, path] of [
    [` ${redeemed.code.toLowerCase().replaceAll("-", " ")} `, voucher],
    ...[redeemed.id, link, redeemed.ticket, redeemed.redeemCode, `${batchId} 1`].map((words) => [words, voucher]),
    [partner.organizationId, `/organizations/${partner.organizationId}`],
    [` ${batchId}`, `/batches/${batchId}`],
    ["whk_01m7zjmag4eh3rfc1b0q9x4d7e", "/webhooks/whk_01m7zjmag4eh3rfc1b0q9x4d7e"],
  ] as [string, string][]) {
    expect(await search(words), words).toMatchObject({ status: 303, location: `/ops${path}` });
  }
});

it("the operator pages find organizations by a part of the name, and list their webhooks and changes", async () => {
  await db.query("UPDATE organizations SET name = 'Grüner Laden' WHERE id = $1", [partner.organizationId]);
  expect((await search("grüner")).text).toContain(`/ops/organizations/${partner.organizationId}`);
  expect((await open("/webhooks")).text).toContain("<h1>Webhooks</h1>");
  const changes = (await open("/audit")).text;
  expect(changes).toContain("<h1>Audit</h1>");
  expect(changes).not.toContain("page voucher");
  const filter = (form: Record<string, string>, path = "audit") =>
    browse(`${api.url}/ops/${path}`, { headers: basic(OPS_TOKEN), form });
  const entity = partner.organizationId;
  expect((await filter({ entity, user: "nemo" })).text).toContain("No change has this id and this name.");
  const file = await filter({ entity }, "audit.csv");
  expect(file.headers.get("content-disposition")).toContain("audit.csv");
  const [head, ...lines] = file.text.trimEnd().split("\r\n");
  expect(head).toBe('"time","user","host","knownBy","command","entityType","entityId"');
  expect(lines.every((line) => line.endsWith(`"Organization","${partner.organizationId}"`))).toBe(true);
  const { code } = await makeReferral(db, partner);
  const codeHash = createHash("sha256").update(code).digest("hex");
  const ofLink = (await open("/audit")).text;
  expect(ofLink).toContain('data-name="Id"></td>');
  expect(ofLink).not.toContain(codeHash);
  expect((await open("/audit?before=1")).text).toContain("The list ends here.");
  expect((await open("/audit?before=1.5")).status).toBe(400);
});

it("an operators' search by a reference lists all vouchers with the reference, or says so if none has it", async () => {
  expect(await search(REFERENCE)).toMatchObject({ status: 303, location: `/ops/vouchers/${redeemed.id}` });
  const [voucher] = await issueVouchers(db, stranger, 1);
  await foreign.redeem({ code: voucher?.code ?? "", externalRef: REFERENCE });
  const both = await search(REFERENCE);
  expect(both).toMatchObject({ status: 200, text: expect.stringContaining("2 vouchers") });
  for (const shown of [redeemed.id, voucher?.id, partner.organizationId, stranger.organizationId]) {
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

it("the operator pages show a voucher's whole history in order, with all text escaped", async () => {
  const { text } = await open(`/vouchers/${redeemed.id}`);
  expect(text).toMatch(/<strong>Issued<[\s\S]*<strong>Reserved<[\s\S]*<strong>Redeemed</);
  const { code, ticket, redeemCode } = redeemed;
  for (const shown of [code, ticket, redeemCode, "Consumed", "order &#60;7&#62; &#38; Söhne", "Mrs Miller"]) {
    expect(text).toContain(shown);
  }
  expect(text).not.toMatch(/<7>|<b>/);
  const usable = (await open(`/vouchers/${reserved.id}`)).text;
  expect(usable).toMatch(/Active<\/span> <span class="badge plain">Reserved</);
  expect(usable).toContain(`<code>…${reserved.code.slice(-4)}</code>`);
  expect(usable).not.toContain(reserved.code);
  for (const id of ["vch_none", code]) expect((await open(`/vouchers/${id}`)).status, id).toBe(404);
});

it("the operator pages list an organization's last redemptions, and the vouchers left in each batch", async () => {
  const busy = await makeOffer(db, 40);
  const client = partnerClient(api.url, (await makeKey(db, busy.organizationId)).key);
  for (const [index, { code }] of busy.vouchers.slice(0, 27).entries()) {
    expect((await client.redeem({ code, externalRef: `${100 + index}` })).status).toBe(200);
  }
  const first = (await open(`/organizations/${busy.organizationId}`)).text;
  const references = (text: string) =>
    Array.from(text.matchAll(/<td[^>]*><bdi>(\d+)<\/bdi><\/td>/g), ([, digits]) => Number(digits));
  expect(references(first)).toEqual(Array.from({ length: 25 }, (_, index) => 126 - index));
  await db.query("UPDATE activity_counted SET counted_until = clock_timestamp() - interval '5 minutes'");
  await countNextActivity(db, new Date(), null);
  const counted = (await open(`/organizations/${busy.organizationId}`)).text;
  expect(counted).toMatch(/<dt>Redemptions, last hour<\/dt><dd>27<[\s\S]*<dt>Redemptions, last two days<\/dt><dd>27</);
  expect(first).toMatch(
    new RegExp(
      `${busy.batchId}</code></a></td><td[^>]*><bdi>Pass</bdi></td><td class="figure"[^>]*>40</td>\
<td class="figure"[^>]*>13</td>`,
    ),
  );
  expect(Array.from(first.matchAll(/<h2 id="(\w+)">/g), ([, id]) => id).slice(0, 3)).toEqual([
    "keys",
    "batches",
    "redemptions",
  ]);
  expect(references((await open(nextOf(first, "/ops"))).text)).toEqual([101, 100]);
  const batch = (await open(`/batches/${busy.batchId}`)).text;
  expect(batch).toMatch(/<dt>Active<\/dt><dd>13<\/dd>[\s\S]*<dt>Redeemed<\/dt><dd>27<\/dd>/);
  expect((await open("/organizations")).text).toContain(busy.organizationId);
  const unknown = ["/organizations/org_none", "/organizations/%00", "/batches/bat_none", `/batches/${"x".repeat(300)}`];
  for (const path of unknown) expect((await open(path)).status, path).toBe(404);
  expect((await open(`/organizations/${busy.organizationId}?redeemedBefore=now`)).status).toBe(400);
});

it("an organization's operator page shows its name and id, and says if the organization has no brands", async () => {
  await db.query("INSERT INTO organizations (id, name) VALUES ('org_new', 'Söhne & <b>')");
  const text = (await open("/organizations/org_new")).text;
  expect(text).toContain("<h1><bdi>Söhne &#38; &#60;b&#62;</bdi></h1>");
  expect(text).toMatch(/<dt>Organization<\/dt><dd><code>org_new<.*\n.*<dt>Brands<\/dt><dd>None yet\. /);
  expect(text).toContain("<title>Organization Söhne &#38; &#60;b&#62; · Operations · Partner Voucher API</title>");
  const here = ' aria-current="page"><bdi>Söhne &#38; &#60;b&#62;</bdi></a></li>';
  expect(text).toContain(`<li><a href="/ops/organizations/org_new"${here}`);
  expect(text).toContain('<a href="/ops/organizations" aria-current="true">Organizations</a>');
  const { rows } = await db.query("SELECT name FROM brands WHERE id = $1", [partner.brandId]);
  const named = (await open(`/organizations/${partner.organizationId}`)).text;
  expect(named).toMatch(new RegExp(`<dt>Brands</dt><dd><a href="/ops/brands/brd_\\w+"><bdi>${rows[0].name}</bdi>`));
});

it("an empty list on an operator page links to the form for a new entry, or names the command", async () => {
  const { organizationId, brandId, productId } = await makePartner(db);
  const { id: contractId } = await offerContract.run(provisioning(db), brandId, { user: "bob", endsAt: null });
  await acceptContract.run(provisioning(db), contractId, {});
  await db.query("INSERT INTO brands (id, organization_id, name) VALUES ('brd_empty', $1, 'Empty')", [organizationId]);
  for (const [path, form, command] of [
    ["/operators", "/new", "operator create"],
    ["/organizations/org_new", "/brands/new", "brand create"],
    ["/organizations/org_new", "/keys/new", "key create"],
    ["/organizations/org_new", "/webhooks/new", "webhook create"],
    ["/brands/brd_empty", "/products/new", "product create"],
    ["/brands/brd_empty", "/contracts/new", "contract offer"],
    [`/products/${productId}`, "/batches/new", "batch issue"],
    [`/contracts/${contractId}`, "/links/new", "link create"],
  ]) {
    expect((await open(`${path}`, { at: writable })).text, path).toContain(`. <a href="/ops${path}${form}">`);
    expect((await open(`${path}`)).text, path).toContain(
      `. To add one, an administrator runs <code>voucherctl ${command}<`,
    );
  }
});

it("each view of a partner's data adds an audit entry with the operator's name, but without a code", async () => {
  for (const [path, command, entity_id] of looks) {
    const before = await lastEntry();
    expect((await open(path)).status).toBe(200);
    const after = await lastEntry();
    expect(after.id).toBe(before.id + 1);
    const host = expect.stringContaining("127.0.0.1");
    expect(after).toMatchObject({
      os_user: "shared: Zoë",
      by: "shared",
      host,
      before: null,
      after: null,
      command,
      entity_id,
    });
  }
  await search(REFERENCE);
  expect(await lastEntry()).toMatchObject({ command: "page search", entity_id: "vouchers", arguments: { found: 2 } });
  await search(redeemed.code);
  const { rows } = await db.query(
    "SELECT to_json(a)::text AS text FROM audit_entries AS a WHERE command LIKE 'page %'",
  );
  for (const { text } of rows) expect(text).not.toContain(redeemed.code);
  const before = await lastEntry();
  for (const path of ["", "/runbook", "/vouchers/vch_none"]) await open(path);
  expect((await lastEntry()).id).toBe(before.id);
});

it("a search on the operator pages puts no code, ticket or redeem code into a URL", async () => {
  const { code, ticket, redeemCode } = redeemed;
  const secrets = [code, code.replaceAll("-", ""), ticket, redeemCode, reserved.code, reserved.ticket];
  const pages = await Promise.all(looks.map(([path]) => open(path)));
  for (const words of [...secrets, `${code} x`]) pages.push(await search(words));
  for (const { location, text } of pages) {
    const urls = [location, ...Array.from(text.matchAll(/\s(?:href|action|src)="([^"]*)"/g), ([, url = ""]) => url)];
    for (const secret of secrets) expect(urls.join(" ").toLowerCase()).not.toContain(secret.toLowerCase());
    const fields = [...text.matchAll(/<form[^>]*method="get"[\s\S]*?<\/form>/g)].join("");
    expect(fields).not.toContain('name="words"');
  }
  const before = await lastEntry();
  for (const words of [code, "nothing"]) {
    const { status, text } = await open(`/vouchers?words=${words}`);
    expect([status, text.includes("<h1>Find</h1>"), text.includes(words)]).toEqual([200, true, false]);
  }
  expect((await lastEntry()).id).toBe(before.id);
});

it("the operator pages refuse another site's searches, images and frames, but accept that site's links", async () => {
  const from = (site: string, dest: string) => ({ "sec-fetch-site": site, "sec-fetch-dest": dest });
  const path = `/vouchers/${redeemed.id}`;
  const before = await lastEntry();
  for (const site of ["cross-site", "same-site"]) {
    const form = { words: REFERENCE };
    expect((await open("/vouchers", { form, headers: from(site, "document") })).status).toBe(403);
    for (const dest of ["image", "iframe", "empty"]) {
      expect((await open(path, { headers: from(site, dest) })).status, dest).toBe(403);
    }
  }
  expect((await open(path, { headers: { origin: "https://evil.test" } })).status).toBe(403);
  expect((await lastEntry()).id).toBe(before.id);
  expect((await open(path, { headers: from("cross-site", "document") })).status).toBe(200);
  expect((await open(path, { headers: from("same-origin", "image") })).status).toBe(200);
});

it("the operator pages show no data if the view's audit entry cannot be written", async () => {
  await db.query("ALTER TABLE audit_entries ADD CONSTRAINT refuse_looks CHECK (command NOT LIKE 'page %') NOT VALID");
  const { status, text } = await open(`/vouchers/${redeemed.id}`);
  await db.query("ALTER TABLE audit_entries DROP CONSTRAINT refuse_looks");
  expect(status).toBe(500);
  expect(text).not.toContain(redeemed.code);
});

it("the operator pages include the runbook, with an HTML anchor for the name of each alert", async () => {
  const { text } = await open("/runbook");
  const rules = readFileSync("docs/observability/prometheus-rules.yml", "utf8");
  const alerts = [...rules.matchAll(/alert: (\w+)/g)].map(([, name]) => name);
  expect(alerts.length).toBeGreaterThan(20);
  const linkOf = (name = "") => new RegExp(`<li id="${name}"><a href="(/docs/runbook/\\w+)#${name.toLowerCase()}">`);
  const pages = alerts.map((alert) => linkOf(alert).exec(text)?.[1]);
  expect(alerts.filter((_, at) => pages[at] === undefined)).toEqual([]);
  const entry = await fetch(`${api.url}${pages[0]}`);
  expect(await entry.text()).toMatch(/<h2 id="vouchers\w+">Vouchers\w+<\/h2>\n<p><strong>Means\.<\/strong>/);
});

describe("an organization's API keys", () => {
  /** Newest first. */
  let keys: { id: string; key: string }[];
  let path: string;
  const listed = (text: string) => [...text.matchAll(/<code id="(key_\w+)">\1<\/code>/g)].map(([, id]) => id);
  const rowOf = (text: string, id = "") => text.split("<tr>").find((row) => row.includes(`id="${id}"`));

  beforeAll(async () => {
    const { organizationId } = await makePartner(db);
    path = `/organizations/${organizationId}`;
    const made = await Promise.all(Array.from({ length: 27 }, () => makeKey(db, organizationId)));
    keys = made.toSorted((a, b) => (a.id < b.id ? 1 : -1));
  });

  it("an organization's page lists keys newest first, without secrets, and a search finds a key by id", async () => {
    const ids = keys.map(({ id }) => id);
    const first = (await open(path)).text;
    expect(listed(first)).toEqual(ids.slice(0, 25));
    const second = (await open(nextOf(first, "/ops"))).text;
    expect(listed(second)).toEqual(ids.slice(25));
    expect(second).not.toContain("keysBefore");
    for (const { key } of keys) {
      expect(first + second).not.toContain(key.slice(4));
      expect(first + second).not.toContain(createHash("sha256").update(key).digest("hex"));
    }
    for (const place of [0, 24, 25, 26]) {
      const { status, location } = await search(` ${ids[place]}`);
      const [page = "", anchor] = location.split("#");
      expect([status, anchor, page.startsWith(`/ops${path}`)]).toEqual([303, ids[place], true]);
      expect(page.includes("?"), page).toBe(place > 24);
      expect(listed((await open(page.slice("/ops".length))).text), String(place)).toContain(ids[place]);
    }
  });

  it("an organization's page shows each API key's label, scopes, last use and end", async () => {
    const [active, ending, expired, revoked] = keys.map(({ id }) => id);
    const change = (set: string, id = "") => db.query(`UPDATE api_keys SET ${set} WHERE id = $1`, [id]);
    await change("label = 'till <7>', created_at = '2026-11-20T10:00:00Z'", active);
    await db.query("INSERT INTO api_key_uses VALUES ($1, '2026-11-22T03:04:05Z')", [active]);
    await change("expires_at = '2099-01-02T03:04:05Z'", ending);
    await change("expires_at = '2026-01-02T03:04:05Z'", expired);
    await change("expires_at = '2026-01-02T03:04:05Z', revoked_at = '2025-11-21T10:00:00Z'", revoked);
    const { text } = await open(path);
    const cells = [
      "<br>till &#60;7&#62;",
      '<span class="badge good">Active</span>',
      "<time [^>]*>22 November 2026, 03:04 UTC</time>",
      "voucher.read, voucher.redeem",
      "<time [^>]*>20 November 2026, 10:00 UTC</time>",
    ];
    expect(rowOf(text, active)).toMatch(new RegExp(cells.join("</td><td[^>]*>")));
    expect(rowOf(text, ending)).toMatch(
      /<span [^>]*>Active<\/span> until <time [^>]*>2 January 2099[^<]*<\/time><\/td><td[^>]*>never</,
    );
    expect(rowOf(text, expired)).toMatch(/Expired<\/span> <time [^>]*>2 January 2026, 03:04 UTC/);
    expect(rowOf(text, revoked)).toMatch(/<span class="badge bad">Revoked<\/span> <time [^>]*>21 November 2025/);
  });

  it("an operator's search for a key that is unknown or of no organization says so, and is audited", async () => {
    const unknown = "key_01jzbq0000e00a4g0g00000001";
    const { id: unbound } = await makeKey(db, null);
    for (const [id, sentence] of [
      [unknown, `There is no key ${unknown}.`],
      [unbound, `Key ${unbound} has no organization`],
    ] as const) {
      const before = await lastEntry();
      expect(await search(id)).toMatchObject({ status: 404, text: expect.stringContaining(sentence) });
      expect(await lastEntry()).toMatchObject({ command: "page search", id: before.id + 1 });
    }
  });
});

it("a webhook endpoint's operator page shows its state and deliveries, escaped and without secrets", async () => {
  const id = "whk_01jzbq0000e00a4g0g00000001";
  const path = `/webhooks/${id}`;
  const eventTimes = (text: string) =>
    [...text.matchAll(/<td data-name="Event">voucher\.instance\.redeemed (\d+)<br>/g)].map(([, n]) => Number(n));
  await db.query(
    `INSERT INTO webhook_endpoints (id, organization_id, place, url, description, failing_since)
     VALUES ($1, $2, 1, 'https://shop.example.com/hooks?"><script>alert(1)</script>', '<b>till</b>',
             '2026-11-20T10:00:00Z')`,
    [id, partner.organizationId],
  );
  // Webhook deliveries, newest last: 30 delivered, one given up, one in retry, and one that waits for the retry.
  await db.query(
    `INSERT INTO webhook_deliveries
       (position, created_at, next_attempt_at, finished_at, sequence, attempts, last_status, endpoint_id,
        event_id, voucher_id, event_type, state, last_failure)
     SELECT n, '2026-11-21T00:00:00Z'::timestamptz + n * interval '1 second', CASE WHEN n = 32 THEN now() END,
            CASE WHEN n < 32 THEN now() END, n, CASE WHEN n = 33 THEN 0 WHEN n < 31 THEN 1 ELSE 10 END,
            CASE WHEN n = 31 THEN 503 WHEN n < 31 THEN 204 END, $1, $2 || '-' || n, $2, 'voucher.instance.redeemed',
            CASE WHEN n < 31 THEN 'Delivered' WHEN n = 31 THEN 'Failed' ELSE 'Pending' END,
            CASE n WHEN 31 THEN 'status' WHEN 32 THEN 'refused_address' END
       FROM generate_series(1, 33) AS n`,
    [id, redeemed.id],
  );
  expect((await open(`/organizations/${partner.organizationId}`)).text).toContain(`href="/ops${path}"`);
  const { status, text } = await open(path);
  expect(await lastEntry()).toMatchObject({ command: "page webhook", entity_id: id });
  expect(status).toBe(200);
  expect(text).toMatch(/<dt>Waiting deliveries<\/dt><dd>2<\/dd>/);
  expect(text).toMatch(/Enabled, failing[\s\S]*20 November 2026, 10:00:00 UTC/);
  expect(text).toContain("?&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;");
  expect(text).toContain("&#60;b&#62;till");
  expect(text).not.toMatch(/<script|<b>|whsec_/);
  expect(text).toMatch(/<br>Order <bdi>/);
  expect(text).toContain(`</bdi></a></li> <li><a href="/ops/webhooks/${id}" aria-current="page">`);
  expect((await open(`${path}?state=Erased`)).text).toContain("No delivery is Erased.");
  expect(eventTimes(text)).toEqual(Array.from({ length: 25 }, (_, index) => 33 - index));
  const cells = text.replaceAll(/<td[^>]*>/g, "<td>");
  expect(cells).toContain("Failed</span></td><td>10</td><td>503</td>");
  expect(cells).toMatch(/Pending<\/span><br>next <time [^<]*<\/time><\/td><td>10<\/td><td>refused address<\/td>/);
  expect(cells).toContain("Pending</span><br>after the voucher's earlier event</td><td>0</td><td></td>");
  const second = (await open(nextOf(text, "/ops"))).text;
  expect(eventTimes(second)).toEqual(Array.from({ length: 8 }, (_, index) => 8 - index));
  expect(eventTimes((await open(`${path}?state=Failed`)).text)).toEqual([31]);
  expect(eventTimes((await open(`${path}?state=Pending`)).text)).toEqual([33, 32]);
  await db.query("DELETE FROM webhook_deliveries WHERE state = 'Failed'");
  expect((await open(`${path}?state=Failed`)).text).toContain("None was given up: those that wait are tried again");
  for (const query of ["cursor=now", "state=Lost"]) expect((await open(`${path}?${query}`)).status, query).toBe(400);
  await db.query(
    `UPDATE webhook_endpoints
        SET enabled = false, disabled_reason = 'partner', disabled_at = now(), deleted_at = now(), place = NULL
      WHERE id = $1`,
    [id],
  );
  for (const unknown of [id, "whk_none", "%00", "x".repeat(300)]) {
    expect((await open(`/webhooks/${unknown}`)).status, unknown).toBe(404);
  }
});

it("the operator pages mark a sandbox's vouchers as sandbox, and mark no live vouchers", async () => {
  const sandbox = await makePartner(db, { sandbox: true });
  const [voucher] = await issueVouchers(db, sandbox, 1);
  const { rows } = await db.query("SELECT batch_id AS id FROM vouchers WHERE id = $1", [voucher?.id]);
  const paths = ["", `/${sandbox.organizationId}`].map((id) => `/organizations${id}`);
  for (const path of [...paths, `/batches/${rows[0].id}`, `/vouchers/${voucher?.id}`]) {
    expect((await open(path)).text, path).toContain("Sandbox");
  }
  for (const [path] of looks.slice(0, 3)) expect((await open(path)).text, path).not.toContain("Sandbox");
});

it("an operator can release a live reservation with a reason only if OPS_WRITABLE is true", async () => {
  const page = (at = api) => open(`/vouchers/${reserved.id}`, { at });
  const release = (at: typeof api, headers = {}, form: Form = { ticket: reserved.ticket }) =>
    open(`/vouchers/${reserved.id}/release`, { form, at, headers });
  const isLive = async () => (await till.lookUp(reserved.code)).body.reservation !== null;
  expect((await page()).text).not.toContain("Release this reservation");
  expect((await release(api)).status).toBe(405);
  expect((await release(writable, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  expect(await isLive()).toBe(true);
  expect((await page(writable)).text).toContain("Release this reservation");
  expect(await release(writable)).toMatchObject({ status: 303, location: `/ops/vouchers/${reserved.id}` });
  expect(await isLive()).toBe(false);
  expect(await lastEntry()).toMatchObject({ command: "page release", entity_id: reserved.id });
  expect((await page()).text).toContain("released by an operator");
  expect((await release(writable)).status).toBe(409);
  expect((await release(writable, {}, {})).status).toBe(409);
});

/** Opens an operator page as a signed-in browser does. */
function open(
  path: string,
  { headers = {}, form, at = api }: { headers?: Record<string, string>; form?: Form; at?: typeof api } = {},
) {
  return browse(`${at.url}/ops${path}`, { headers: { ...basic(OPS_TOKEN), ...headers }, form });
}

async function lastEntry() {
  return (await db.query("SELECT * FROM audit_entries ORDER BY id DESC LIMIT 1")).rows[0];
}
