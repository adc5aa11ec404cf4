import { Queue } from "bullmq";
import { beforeAll, expect, it } from "vitest";
import { isAllowed, OPERATOR_ROLES, type OperatorRole } from "../../src/acts/operator-role.ts";
import { operatorRoutes } from "../../src/console/mount-operator-pages.ts";
import { openRoles } from "../../src/console/roles.ts";
import { each } from "../../src/open/api-parts.ts";
import { WING_ACTS } from "../../src/open/wing-acts.ts";
import { browse, OPS_TOKEN } from "../support/browse.ts";
import { makeOffer, makeReferral } from "../support/marketplace.ts";
import { makeOperator, makeOperators, type TestOperator } from "../support/operators.ts";
import { tablesWith } from "../support/row-dump.ts";
import { issueTestBatch, issueVouchers } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const service = useService({ apis: [{ OPS_TOKEN, OPS_WRITABLE: "true" }], shards: 1 });
const { api, db, partner, servers, till } = service;
let operators: Record<OperatorRole, TestOperator>;

beforeAll(async () => {
  operators = await makeOperators(db);
});

/** The routes of all operator pages. */
const routes = () => operatorRoutes({ ...api.ctx, config: { ...api.ctx.config } }, each("operatorPages"), WING_ACTS);

it("each console address requires its role, and names the role to an operator with a lower role", async () => {
  const table = routes();
  expect(table.length).toBeGreaterThan(60);
  for (const { method, path, role } of table) {
    const needed = OPERATOR_ROLES.indexOf(role);
    for (const has of OPERATOR_ROLES.slice(Math.max(0, needed - 1), needed + 1)) {
      for (const verb of method === "all" ? ["GET", "PUT"] : [method.toUpperCase()]) {
        const { status, text } = await browse(`${api.url}/ops${path.replaceAll(/:\w+/g, "none_0")}`, {
          method: verb,
          headers: { ...operators[has].headers, accept: "application/json" },
        });
        const isRefused = !isAllowed(has, role);
        expect(status, path).toBeLessThan(500);
        expect({ verb, path, has, isRefused: status === 403 }).toEqual({ verb, path, has, isRefused });
        if (isRefused) expect(text).toContain(`This needs the role ${role}. You are signed in as ${has}.`);
      }
    }
  }
});

it("viewers can only read, operators can do listed acts, and admins can do all acts", () => {
  const needs = (role: OperatorRole) =>
    routes().flatMap(({ method, path, role: needed }) => (needed === role && method === "post" ? [path] : []));
  expect(needs("viewer")).toEqual(["/audit", "/audit.csv", "/vouchers"]);
  const queues = ["redeem", "seal", "sweep", "log", "webhook"];
  expect(needs("operator").toSorted()).toEqual(
    [
      ...["codes.csv", "listings/new", "print", "resume", "suspend"].map((act) => `/batches/:id/${act}`),
      "/brands/:id/contracts/new",
      ...["accept", "decline", "end", "links/new"].map((act) => `/contracts/:id/${act}`),
      ...queues.flatMap((queue) => ["clean", "retry"].map((act) => `/queues/${queue}/${act}`)),
      ...["extend", "release", "resume", "suspend", "void"].map((act) => `/vouchers/:id/${act}`),
      "/organizations/:id/webhooks/new",
      ...["disable", "enable", "replay", "rotate", "test"].map((act) => `/webhooks/:id/${act}`),
    ].toSorted(),
  );
  expect(needs("admin")).toEqual(
    expect.arrayContaining([
      "/organizations/new",
      "/organizations/:id/keys/new",
      "/operators/new",
      "/products/:id/batches/new",
      "/batches/:id/void",
      "/queues/redeem/pause",
    ]),
  );
});

it("an operator page shows exactly the links and forms that its reader's role allows", async () => {
  const { paths } = await exampleOf();
  const roleOf = openRoles(routes);
  const offered: Record<OperatorRole, string[]> = { viewer: [], operator: [], admin: [] };
  for (const has of OPERATOR_ROLES) {
    for (const path of paths) {
      const { status, text } = await browse(`${api.url}/ops${path}`, { headers: operators[has].headers });
      expect(status, path).toBe(200);
      for (const [, link = ""] of text.matchAll(/(?:href|action)="\/ops(\/[^"#]*)"/g)) {
        if (/^\/(sign-out|queues\/jobs)/.test(link)) continue;
        const needed = roleOf(link);
        expect({ link, has, may: isAllowed(has, needed) }).toEqual({ link, has, may: true });
        offered[needed].push(has);
      }
    }
  }
  expect(new Set(offered.operator)).toEqual(new Set(["operator", "admin"]));
  expect(new Set(offered.admin)).toEqual(new Set(["admin"]));
});

it("the page of operators counts the active operators of each role", async () => {
  const { id } = await makeOperator(db, "viewer");
  const read = async () => {
    const { text } = await browse(`${api.url}/ops/operators`, { headers: operators.viewer.headers });
    return Object.fromEntries(
      Array.from(text.matchAll(/<dt>(.*?)<\/dt><dd>(\d+)</g), ([, name, count]) => [name, count]),
    );
  };
  expect(await read()).toEqual({ "Named operators": "4", "As viewer": "2", "As operator": "1", "As admin": "1" });
  await db.query("UPDATE operators SET expires_at = clock_timestamp() WHERE id = $1", [id]);
  expect(await read()).toEqual({ "Named operators": "3", "As viewer": "1", "As operator": "1", "As admin": "1" });
  await db.query("UPDATE operators SET expires_at = NULL, revoked_at = clock_timestamp() WHERE id = $1", [id]);
  expect(await read()).toMatchObject({ "Named operators": "3" });
});

it("a viewer sees no voucher's code, not even a used voucher's code", async () => {
  const { redeemed } = await exampleOf();
  const open = async (has: OperatorRole) =>
    (await browse(`${api.url}/ops/vouchers/${redeemed.id}`, { headers: operators[has].headers })).text;
  const [seen, full] = [await open("viewer"), await open("operator")];
  for (const secret of [redeemed.code, redeemed.redeemCode]) {
    expect(full).toContain(secret);
    expect(seen).not.toContain(secret);
  }
  expect(seen).not.toContain(redeemed.code.slice(-4));
});

it("an operator sees only the last characters of a long Active code, and nothing of a short one", async () => {
  for (const [code, shown] of [
    ["ZQ7X", "…"],
    ["ZQ7-X81", "…"],
    ["ZQ7X-8100-4711-ABC", "…"],
    ["ZQ7X 8100 4711 AB-CD", "…ABCD"],
  ] as const) {
    const { vouchers } = await issueTestBatch(db, partner, 1, { codes: [code] });
    const path = `${api.url}/ops/vouchers/${vouchers[0]?.id}`;
    const { text } = await browse(path, { headers: operators.admin.headers });
    expect(text).toContain(`<dt>Code</dt><dd><code>${shown}</code></dd>`);
    expect((await browse(path, { headers: operators.viewer.headers })).text).not.toContain("<dt>Code</dt>");
  }
});

it("a viewer can search by id or reference, but not by code, ticket or redeem code", async () => {
  const { redeemed, ticket } = await exampleOf();
  const search = (has: OperatorRole, words: string) =>
    browse(`${api.url}/ops/vouchers`, { form: { words }, headers: operators[has].headers });
  const found = { status: 303, location: `/ops/vouchers/${redeemed.id}` };
  for (const words of [redeemed.id, `order-${redeemed.id}`]) expect(await search("viewer", words)).toMatchObject(found);
  const guess = (words: string) => search("viewer", words).then(({ text }) => text.replaceAll(words, "GUESS"));
  const spellings = [redeemed.code, redeemed.code.toLowerCase().replaceAll("-", " "), redeemed.redeemCode, ticket];
  for (const words of spellings) {
    expect((await search("operator", words)).status, words).toBe(303);
    const wrong = words.replace(/.$/, (last) => (last === "2" ? "3" : "2"));
    expect(await guess(words)).toBe(await guess(wrong));
  }
});

it("no page for a viewer contains a code, redeem code, ticket or link code", async () => {
  const { paths, redeemed } = await exampleOf();
  const offer = await makeOffer(db, 2);
  const { contractId } = await makeReferral(db, offer);
  const [active] = await issueVouchers(db, partner, 1);
  const { ticket } = (await till.reserve(String(active?.code))).body;
  await till.redeem({ ticket, externalRef: `order-${active?.id}` });
  const { rows: credentials } = await db.query<{ text: string }>(
    `SELECT code AS text FROM vouchers UNION SELECT code_key FROM vouchers UNION SELECT redeem_code FROM redemptions
      UNION SELECT ticket FROM reservations UNION SELECT code FROM referral_links`,
  );
  expect(credentials.length).toBeGreaterThan(10);
  // An error message that quotes secrets, as errors of Postgres may do.
  const quoted = `Key (code)=(${redeemed.code}) ${ticket}`;
  const { job, remove } = await addFailedJob({ code: redeemed.code, voucherId: redeemed.id }, quoted);
  const board = ["active", "completed", "failed", "latest", "waiting"].map(
    (state) => `/queues/jobs/api/queues?activeQueue=redeem&status=${state}&page=1&jobsPerPage=50`,
  );
  const ofJob = ["", "/logs", "/flow"].map((part) => `/queues/jobs/api/queues/redeem/${job}${part}`);
  const { rows } = await db.query("SELECT id FROM vouchers");
  const read = async (has: OperatorRole) => {
    const found = new Set<string>();
    const look = (text: string, path: string) => {
      const answer = text.toLowerCase();
      for (const { text: secret } of credentials) {
        if (!answer.includes(secret.toLowerCase())) continue;
        found.add(secret);
        if (has === "viewer") expect.soft(path, "a credential is shown here").toBe("");
      }
    };
    const all = [...paths, ...VIEWED, `/contracts/${contractId}`, `/brands/${offer.brandId}`, ...board, ...ofJob];
    for (const path of [...all, ...rows.map(({ id }) => `/vouchers/${id}`)]) {
      for (const accept of ["text/html", "application/json"]) {
        const headers = { ...operators[has].headers, accept };
        const { status, text } = await browse(`${api.url}/ops${path}`, { headers });
        expect(status, path).toBe(200);
        look(text, path);
      }
    }
    for (const words of [redeemed.id, `order-${redeemed.id}`, "nothing", "a"]) {
      const { text } = await browse(`${api.url}/ops/vouchers`, { form: { words }, headers: operators[has].headers });
      look(text, "/vouchers");
    }
    return found.size;
  };
  expect(await read("viewer")).toBe(0);
  expect(await read("operator")).toBeGreaterThan(5);
  const cause = async (has: OperatorRole) => {
    const { headers } = operators[has];
    const page = await browse(`${api.url}/ops/queues/redeem`, { headers });
    const json = await browse(`${api.url}/ops${ofJob[0]}`, { headers });
    return [page.text.includes(redeemed.code), json.text.includes(`"failedReason":"${quoted}"`)];
  };
  expect([await cause("viewer"), await cause("operator")]).toEqual([
    [false, false],
    [true, true],
  ]);
  await remove();
});

/** Adds a failed job of the redeem queue, with this text in every field where BullMQ stores a cause. */
async function addFailedJob(data: object, cause: string) {
  const queue = new Queue("redeem", { prefix: servers.queuePrefix, connection: servers.redis, skipMetasUpdate: true });
  const { id: job } = await queue.add("redeem", data);
  await until(async () => (await queue.getFailedCount()) > 0);
  const causes = { failedReason: cause, stacktrace: JSON.stringify([cause]), defa: cause };
  await servers.redis.hset(queue.toKey(String(job)), causes);
  await servers.redis.rpush(`${queue.toKey(String(job))}:logs`, cause);
  const remove = async () => {
    await queue.obliterate({ force: true });
    await queue.close();
  };
  return { job, remove };
}

it("a viewer can read the queue dashboard, but change nothing through its API", async () => {
  const headers = operators.viewer.headers;
  expect((await browse(`${api.url}/ops/queues/jobs/`, { headers })).status).toBe(200);
  expect((await browse(`${api.url}/ops/queues/jobs/api/queues`, { headers })).status).toBe(200);
  for (const path of ["api/queues/redeem/pause", "api/queues/redeem/1/retry", "api/queues/redeem/clean/failed"]) {
    for (const method of ["PUT", "POST", "PATCH", "DELETE"]) {
      const { status } = await browse(`${api.url}/ops/queues/jobs/${path}`, { method, headers, json: {} });
      expect([method, path, status]).toEqual([method, path, 405]);
    }
  }
});

it("only an admin can erase a voucher's personal data by the form on the voucher's page", async () => {
  const { redeemed } = await exampleOf();
  const reference = `order-${redeemed.id}`;
  const path = `${api.url}/ops/vouchers/${redeemed.id}`;
  const offersIt = async (role: OperatorRole) =>
    (await browse(path, { headers: operators[role].headers })).text.includes(`/ops/vouchers/${redeemed.id}/erase`);
  expect([await offersIt("viewer"), await offersIt("operator"), await offersIt("admin")]).toEqual([false, false, true]);
  const send = (role: OperatorRole, confirmation: string) => {
    const form = { formToken: crypto.randomUUID(), confirmation, reason: "asked by the customer" };
    return browse(`${path}/erase`, { form, headers: operators[role].headers });
  };
  for (const role of ["viewer", "operator"] as const) expect((await send(role, redeemed.id)).status).toBe(403);
  for (const wrong of ["another id", redeemed.code]) {
    expect((await send("admin", wrong)).text).toMatch(/f-confirmation-problem" role="alert">/);
  }
  expect(await tablesWith(db, reference)).toEqual(["redemptions", "voucher_events"]);
  const done = await send("admin", redeemed.id);
  expect(done.text).toContain("Erased 1 event of 1 voucher, and 1 other text.");
  const { text } = await browse(path, { headers: operators.admin.headers });
  expect(text).toContain("the record's hash is kept");
  expect(await tablesWith(db, reference)).toEqual([]);
  const { rows } = await db.query("SELECT os_user, by FROM audit_entries WHERE command = 'person erase'");
  expect(rows).toEqual([{ os_user: operators.admin.name, by: "operator" }]);
});

/** Pages that viewers may open, besides those of the entities that `exampleOf` makes. */
const VIEWED = ["/overview.json", "/log", "/webhooks", "/runbook", "/vouchers", "/queues/webhook", "/queues/jobs/"];

/** Makes a redeemed voucher and other entities. Returns them with pages that offer all kinds of actions. */
async function exampleOf() {
  const [used, active] = await issueVouchers(db, partner, 2);
  if (used === undefined || active === undefined) throw new Error("no vouchers");
  const { redeemCode } = (await till.redeem({ code: used.code, externalRef: `order-${used.id}` })).body;
  const { ticket } = (await till.reserve(active.code)).body;
  const { rows } = await db.query("SELECT batch_id AS id FROM vouchers WHERE id = $1", [used.id]);
  const paths = [
    "",
    "/organizations",
    `/organizations/${partner.organizationId}`,
    `/brands/${partner.brandId}`,
    `/products/${partner.productId}`,
    `/batches/${rows[0].id}`,
    `/vouchers/${active.id}`,
    "/queues",
    "/queues/redeem",
    "/operators",
    "/audit",
  ];
  return { redeemed: { ...used, redeemCode: String(redeemCode) }, ticket: String(ticket), paths };
}

it("only an admin sees the query of a webhook URL, because the query may have a token", async () => {
  await db.query(
    `INSERT INTO webhook_endpoints (id, organization_id, place, url, description)
     VALUES ('whk_token', $1, 1, 'https://shop.example.com/hooks?token=s3cret', '')`,
    [partner.organizationId],
  );
  for (const path of ["/webhooks", "/webhooks/whk_token", `/organizations/${partner.organizationId}`]) {
    for (const role of OPERATOR_ROLES) {
      const { text } = await browse(`${api.url}/ops${path}`, { headers: operators[role].headers });
      expect(text).toContain(`https://shop.example.com/hooks?${role === "admin" ? "token=s3cret" : "…"}`);
      expect({ path, role, isShown: text.includes("s3cret") }).toEqual({ path, role, isShown: role === "admin" });
    }
  }
});
