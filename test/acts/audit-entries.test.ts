import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Entity, readEntityState } from "../../src/acts/db/audit-entries.ts";
import { revokeApiKey } from "../../src/acts/key/revoke.ts";
import { rotateKey } from "../../src/acts/key/rotate.ts";
import { openAdminContext } from "../../src/acts/open-acts.ts";
import { withAuditEntry } from "../../src/acts/with-audit-entry.ts";
import { insertMember } from "../../src/core/catalog/db/catalog.ts";
import { acceptContract, declineContract, endContract } from "../../src/marketplace/acts.ts";
import { AppError } from "../../src/platform/api/errors.ts";
import { inTransaction } from "../../src/platform/db/transaction.ts";
import { openLogger } from "../../src/platform/logger.ts";
import { makeContract, newUser } from "../support/marketplace.ts";
import { besideTransaction, lockRows, untilWaiting } from "../support/outside-transaction.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVoucher, makeKey, makePartner, provisioning, type TestPartner } from "../support/supply.ts";
import { voidVoucher } from "../support/void-voucher.ts";

let servers: TestServers;
let partner: TestPartner;

beforeAll(async () => {
  servers = await openTestServers();
  partner = await makePartner(servers.db);
});

afterAll(() => servers.close());

/** Changes of the same entities, which the test runs simultaneously. */
const CHANGES = [
  "member owner",
  "member employee",
  "key rotate",
  "key revoke",
  "contract accept",
  "contract decline",
  "contract end",
  "voucher void",
] as const;

it("after simultaneous changes, each audit entry's before equals the entity's previous after", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...CHANGES), { minLength: 2, maxLength: 16 }), async (changes) => {
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
        withAuditEntry(ctx, member, (tx) =>
          insertMember(tx, { organizationId: partner.organizationId, userId: user, role }),
        );
      const run: Record<(typeof CHANGES)[number], () => Promise<unknown>> = {
        "member owner": () => join("owner"),
        "member employee": () => join("employee"),
        "key rotate": () => rotateKey.run(ctx, key.id, { grace: 60_000 }),
        "key revoke": () => revokeApiKey.run(ctx, key.id, {}),
        "contract accept": () => acceptContract.run(ctx, contract, {}),
        "contract decline": () => declineContract.run(ctx, contract, {}),
        "contract end": () => endContract.run(ctx, contract, {}),
        "voucher void": () => voidVoucher(ctx, partner.organizationId, voucher.code, null),
      };
      await Promise.all(changes.map((change) => run[change]().catch(ignoreRefusal)));
      for (const entity of entities) {
        const entries = await readAuditEntries(entity);
        for (const [index, entry] of entries.slice(1).entries()) {
          expect(entry.before, `${entity.type}, entry ${index + 2}`).toEqual(entries[index].after);
        }
        const now = await inTransaction(servers.db, (tx) => readEntityState(tx, entity));
        if (entries.length > 0) expect(entries.at(-1).after).toEqual(JSON.parse(JSON.stringify(now)));
      }
    }),
    { numRuns: 25 },
  );
});

it("an audit entry records the voucher's state after the transaction has got its row lock", async () => {
  const { id, code } = await issueVoucher(servers.db, partner);
  const entity: Entity = { type: "VoucherInstance", id };
  const { voiding } = await besideTransaction(servers.db, async (outside) => {
    await lockRows(outside, [id]);
    const voiding = voidVoucher(provisioning(servers.db), partner.organizationId, code, null);
    await untilWaiting(servers.db, 1);
    await outside.query("UPDATE vouchers SET serial = 77 WHERE id = $1", [id]);
    await outside.query("COMMIT");
    return { voiding };
  });
  await voiding;
  const [entry, ...others] = await readAuditEntries(entity);
  expect(entry).toMatchObject({ before: { serial: 77, status: "Active" }, after: { serial: 77, status: "Voided" } });
  expect(others).toEqual([]);
});

it("the admin connection can write only in a transaction that adds an audit entry", async () => {
  const admin = openAdminContext(servers.ownerUrl, openLogger("silent", "test"));
  try {
    const write = "UPDATE organizations SET name = 'written' WHERE id = $1";
    await expect(admin.pool.query(write, [partner.organizationId])).rejects.toMatchObject({ code: "25006" });
    await expect(inTransaction(admin.pool, (tx) => tx.query(write, [partner.organizationId]))).rejects.toMatchObject({
      code: "25006",
    });
    const entity: Entity = { type: "Organization", id: partner.organizationId };
    await withAuditEntry({ ...admin, audited: provisioning(servers.db).audited }, entity, (tx) =>
      tx.query(write, [partner.organizationId]),
    );
    const [entry] = await readAuditEntries(entity);
    expect(isDeepStrictEqual([entry.before.name, entry.after.name], [entry.before.name, "written"])).toBe(true);
  } finally {
    await admin.close();
  }
});

it("withAuditEntry rolls back a transaction that does not change the named entity", async () => {
  const entity: Entity = { type: "Organization", id: newUser("org") };
  await withAuditEntry(provisioning(servers.db), entity, (tx) =>
    tx.query("UPDATE brands SET name = 'unseen' WHERE id = $1", [partner.brandId]),
  );
  expect(await readAuditEntries(entity)).toEqual([]);
  const { rows } = await servers.db.query("SELECT 1 FROM brands WHERE name = 'unseen'");
  expect(rows).toEqual([]);
});

/** Ignores a refusal, because a simultaneous change may make the refused change invalid. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof AppError)) throw error;
}

async function readAuditEntries(entity: Entity) {
  const { rows } = await servers.db.query("SELECT before, after FROM audit_entries WHERE entity_id = $1 ORDER BY id", [
    entity.id,
  ]);
  return rows;
}
