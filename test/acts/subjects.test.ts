import { expect, it } from "vitest";
import { basic, browse, OPS_TOKEN } from "../support/browse.ts";
import { send } from "../support/client.ts";
import { makeOffer } from "../support/marketplace.ts";
import { makeKey, makePartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { useVoucherctl } from "../support/voucherctl.ts";

const env = { OPS_TOKEN, OPS_WRITABLE: "true", METRICS_PORT: "0", ISSUER_API: "true" };
const { api, servers, db, as } = useService({ users: true, env });

/** User ids of different users that look the same or differ only in blanks. */
const SUBJECTS = [
  "zoë",
  "zoe\u0308",
  " zoë",
  "zoë ",
  "  zoë",
  "\u00a0zoë",
  "zoë\u00a0",
  "\u3000zoë\ufeff",
  "zo\u200bë",
  "Zoë",
  " ",
  "\u00a0",
];

/** The tables in which the entry points store a user's id. */
const TABLES = ["claims", "members", "referrer_contracts"];
const usersIn = async (table: string) =>
  (await db.query<{ userId: string }>(`SELECT user_id AS "userId" FROM ${table}`)).rows.map(({ userId }) => userId);

it("a user's subject keeps its bytes in a token, a command, a console form and the issuer API", async () => {
  const offer = await makeOffer(db, SUBJECTS.length);
  const { organizationId, brandId } = offer;
  const [{ key }, voucherctl] = [
    await makeKey(db, organizationId, { scopes: ["voucher.issue"] }),
    useVoucherctl(servers),
  ];
  const { organizationId: second } = await makePartner(db);
  for (const user of SUBJECTS) {
    expect((await (await as(user)).claimProduct(offer.productId)).body, user).toMatchObject({
      alreadyConfirmed: false,
    });
    const added = await voucherctl.json("member add", "--org", organizationId, "--user", user, "--role", "employee");
    expect(added).toMatchObject({ user });
    const form = { formToken: crypto.randomUUID(), user, role: "owner" };
    const path = `${api.url}/ops/organizations/${second}/members/new`;
    expect(await browse(path, { form, headers: basic(OPS_TOKEN) })).toMatchObject({ status: 303 });
    const offered = await send("POST", `${api.url}/issuer/brands/${brandId}/contracts`, { key, body: { user } });
    expect(offered.status, user).toBe(200);
  }
  const twice = [...SUBJECTS, ...SUBJECTS].toSorted();
  expect((await usersIn("members")).toSorted()).toEqual(twice);
  for (const table of ["claims", "referrer_contracts"])
    expect((await usersIn(table)).toSorted(), table).toEqual(SUBJECTS.toSorted());

  const left = new Set(SUBJECTS);
  for (const user of SUBJECTS) {
    const erased = await voucherctl.json("person erase --yes", "--user", user);
    expect(erased, JSON.stringify(user)).toMatchObject({ vouchers: 1, events: 1 });
    left.delete(user);
    for (const table of TABLES) {
      const plain = (await usersIn(table)).filter((one) => !one.startsWith("erased:"));
      expect(new Set(plain), `${JSON.stringify(user)} in ${table}`).toEqual(left);
    }
  }
});

it("tokens, commands, console forms and the issuer API refuse an empty user subject", async () => {
  const { organizationId, brandId } = await makePartner(db);
  const { key } = await makeKey(db, organizationId, { scopes: ["voucher.issue"] });
  const command = ["member", "add", "--org", organizationId, "--user", "", "--role", "owner"];
  expect(await useVoucherctl(servers).run(command)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("It must not be empty."),
  });
  const form = { formToken: crypto.randomUUID(), user: "", role: "owner" };
  const path = `${api.url}/ops/organizations/${organizationId}/members/new`;
  expect(await browse(path, { form, headers: basic(OPS_TOKEN) })).toMatchObject({ status: 400 });
  const asked = await send("POST", `${api.url}/issuer/brands/${brandId}/contracts`, { key, body: { user: "" } });
  expect(asked.status).toBe(400);
  expect((await (await as("")).claimProduct("prd_none")).status).toBe(401);
});
