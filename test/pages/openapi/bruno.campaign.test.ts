import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, it } from "vitest";
import { SCOPES } from "../../../src/core/keys/api-keys.ts";
import { OPERATIONS } from "../../support/api-description.ts";
import { COLLECTION, ENVIRONMENT, REQUESTS, runCollection, runRequest } from "../../support/bruno.ts";
import { beginTlog, makeTlogFiles, openSequencer } from "../../support/log-setup.ts";
import { readRecorded } from "../../support/recorded.ts";
import { issueVoucher, makeKey } from "../../support/supply.ts";
import { useService } from "../../support/use-service.ts";

const { api, db, partner, servers } = useService({
  env: { WEBHOOK_SECRET: "a root secret of the tests of Bruno", ISSUER_API: "true" },
});

it("the Bruno collection has one request for every partner, webhook and issuer route except declineContract", () => {
  // Leaves out the request that declines a contract, because the collection offers one contract only, and accepts it.
  const partner = OPERATIONS.filter(
    ({ tags, operationId }) =>
      tags.some((tag) => ["Partner", "Webhooks", "Issuer"].includes(tag)) && operationId !== "declineContract",
  );
  const asked = REQUESTS.map(({ http }) => {
    expect(http.url).toMatch(/^\{\{baseUrl\}\}\//);
    return `${http.method} ${http.url
      .replace("{{baseUrl}}", "")
      .replace(/\?.*/, "")
      .replace(/:(\w+)/g, "{$1}")}`;
  });
  expect(asked.toSorted()).toEqual(partner.map(({ method, path }) => `${method} ${path}`).toSorted());
});

it("the Bruno collection names, explains and checks each request, and sends its key with each", () => {
  expect(REQUESTS.map(({ meta }) => Number(meta.seq))).toEqual(REQUESTS.map((_, index) => index + 1));
  for (const { file, meta, http, docs, assertions } of REQUESTS) {
    expect(meta.name).toBe(basename(file, ".bru"));
    expect(http.auth, file).toBe("inherit");
    expect(docs, file).toMatch(/\.$/);
    expect(assertions, file).toContainEqual(expect.objectContaining({ name: "res.status", value: "eq 200" }));
  }
  expect(COLLECTION.auth).toMatchObject({ mode: "apikey", apikey: { key: "X-Api-Key", placement: "header" } });
});

it("the Bruno collection has an environment for npm start, and no file of it contains a key", () => {
  expect(ENVIRONMENT).toMatchObject([
    { name: "baseUrl", value: "http://localhost:3000" },
    { name: "code", value: "" },
    { name: "apiKey", value: "", secret: true },
  ]);
  for (const file of globSync("docs/bruno/**/*.bru")) expect(readFileSync(file, "utf8")).not.toMatch(/pv[kt]_/);
});

it("the Bruno collection looks up, reserves, redeems and releases in the order of its requests", async () => {
  const { id, code } = await issueVoucher(db, partner);
  const { key } = await makeKey(db, partner.organizationId, { scopes: [...SCOPES] });
  const files = makeTlogFiles();
  await beginTlog(db, files);
  const sequencer = openSequencer(servers, files);
  const given = { baseUrl: api.url, code, apiKey: key };
  const { replies, variables } = await runCollection(given, REQUESTS, async ({ http }) => {
    // Runs the log's sequencer, which in production runs each second.
    if (http.url.endsWith("/receipt")) await sequencer.run();
  });
  files.remove();
  const { redemption } = await readRecorded(db, id);
  expect(redemption).toMatchObject({ externalRef: `bruno-${variables.get("ticket")}` });
  expect(replies.get("Release")?.body).toMatchObject({ released: false });
  expect(replies.get("Read events")?.body.events).toHaveLength(2);
  const redeem = REQUESTS.find(({ meta }) => meta.name === "Redeem");
  if (redeem === undefined) throw new Error("there is no request Redeem");
  expect((await runRequest(redeem, variables)).body).toMatchObject({ alreadyConfirmed: true });
});
