import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openAdminContext } from "../../src/admin-context.ts";
import { type Entity, readEntityState } from "../../src/db/admin-acts.ts";
import { insertMember } from "../../src/db/contracts.ts";
import { inTransaction } from "../../src/db/transaction.ts";
import { lockVoucher } from "../../src/db/vouchers.ts";
import { AppError } from "../../src/domain/errors.ts";
import { openLog } from "../../src/log.ts";
import { changeContract } from "../../src/services/manage-contracts.ts";
import { endKey, rotateKey } from "../../src/services/manage-keys.ts";
import { recordAct } from "../../src/services/record-act.ts";
import { voidVoucher } from "../../src/services/void-voucher.ts";
import { makeContract, newUser } from "../support/marketplace.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVoucher, makeKey, makePartner, provisioning, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

let servers: TestServers;
let partner: TestPartner;

beforeAll(async () => {
  servers = await openTestServers();
  partner = await makePartner(servers.db);
});

afterAll(() => servers.close());

/** Passes over what the rules refuse: another act was first. */
function unlessRefused(error: unknown): void {
  if (!(error instanceof AppError)) throw error;
}

async function actsOn(entity: Entity) {
  const { rows } = await servers.db.query("SELECT before, after FROM admin_acts WHERE entity_id = $1 ORDER BY id", [
    entity.id,
  ]);
  return rows;
}

/** Acts that may be done to the same few entities in any order, by name. */
const MOVES = [
  "member owner",
  "member employee",
  "key rotate",
  "key revoke",
  "contract accept",
  "contract decline",
  "contract end",
  "voucher void",
] as const;

it("each act begins where the one before it on the same entity ended, in whatever order and however many at once", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...MOVES), { minLength: 2, maxLength: 16 }), async (moves) => {
      const ctx = provisioning(servers.db);
      const key = await makeKey(servers.db, partner.organizationId);
      const contract = await makeContract(servers.db, partner.brandId, newUser(), "Offered");
      const voucher = await issueVoucher(servers.db, partner);
      const user = newUser();
      const member: Entity = { type: "Member", id: `${partner.organizationId}/${user}` };
      const entities: Entity[] = [
        member,
        { type: "ApiKey", id: key.id },
        { type: "ReferrerContract", id: contract },
        { type: "VoucherInstance", id: voucher.id },
      ];
      const join = (role: "owner" | "employee") =>
        recordAct(ctx, member, (tx) => insertMember(tx, partner.organizationId, user, role));
      const run: Record<(typeof MOVES)[number], () => Promise<unknown>> = {
        "member owner": () => join("owner"),
        "member employee": () => join("employee"),
        "key rotate": () => rotateKey(ctx, key.id, 60_000),
        "key revoke": () => endKey(ctx, key.id),
        "contract accept": () => changeContract(ctx, contract, "Active"),
        "contract decline": () => changeContract(ctx, contract, "Declined"),
        "contract end": () => changeContract(ctx, contract, "Ended"),
        "voucher void": () => voidVoucher(ctx, partner.organizationId, voucher.code, null),
      };
      await Promise.all(moves.map((move) => run[move]().catch(unlessRefused)));
      for (const entity of entities) {
        const acts = await actsOn(entity);
        for (const [index, act] of acts.slice(1).entries()) {
          expect(act.before, `${entity.type}, act ${index + 2}`).toEqual(acts[index].after);
        }
        const now = await inTransaction(servers.db, (tx) => readEntityState(tx, entity));
        if (acts.length > 0) expect(acts.at(-1).after).toEqual(JSON.parse(JSON.stringify(now)));
      }
    }),
    { numRuns: 25 },
  );
});

it("says what a voucher was when its turn came, not when the act began", async () => {
  const { id, code } = await issueVoucher(servers.db, partner);
  const entity: Entity = { type: "VoucherInstance", id };
  const holder = await servers.db.connect();
  await holder.query("BEGIN");
  await lockVoucher(holder, id);
  const voiding = voidVoucher(provisioning(servers.db), partner.organizationId, code, null);
  await until(async () => {
    const { rows } = await servers.db.query("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'");
    return rows.length === 1;
  });
  await holder.query("UPDATE vouchers SET serial = 77 WHERE id = $1", [id]);
  await holder.query("COMMIT");
  holder.release();
  await voiding;
  const [act, ...others] = await actsOn(entity);
  expect(act).toMatchObject({ before: { serial: 77, status: "Active" }, after: { serial: 77, status: "Voided" } });
  expect(others).toEqual([]);
});

it("writes through the connections of administration in acts alone", async () => {
  const admin = openAdminContext(servers.ownerUrl, openLog("silent", "test"));
  try {
    const write = "UPDATE organizations SET name = 'written' WHERE id = $1";
    await expect(admin.pool.query(write, [partner.organizationId])).rejects.toMatchObject({ code: "25006" });
    await expect(inTransaction(admin.pool, (tx) => tx.query(write, [partner.organizationId]))).rejects.toMatchObject({
      code: "25006",
    });
    const entity: Entity = { type: "Organization", id: partner.organizationId };
    await recordAct({ ...admin, act: provisioning(servers.db).act }, entity, (tx) =>
      tx.query(write, [partner.organizationId]),
    );
    const [act] = await actsOn(entity);
    expect(isDeepStrictEqual([act.before.name, act.after.name], [act.before.name, "written"])).toBe(true);
  } finally {
    await admin.close();
  }
});

it("takes back what an act wrote without changing the entity that it names", async () => {
  const entity: Entity = { type: "Organization", id: newUser("org") };
  await recordAct(provisioning(servers.db), entity, (tx) =>
    tx.query("UPDATE brands SET name = 'unseen' WHERE id = $1", [partner.brandId]),
  );
  expect(await actsOn(entity)).toEqual([]);
  const { rows } = await servers.db.query("SELECT 1 FROM brands WHERE name = 'unseen'");
  expect(rows).toEqual([]);
});
