import { beforeAll, expect, it } from "vitest";
import { readLockedVouchers } from "../../../src/core/voucher/db/vouchers.ts";
import type { PreparedStatements } from "../../../src/platform/db/statements.ts";
import { inTransaction, write } from "../../../src/platform/db/transaction.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { issueVouchers, makeKey } from "../../support/supply.ts";
import { useDatabase } from "../../support/use-service.ts";
import { CASES, type Two } from "./write-cases.ts";

const { servers, partner } = useDatabase();
let keyId: string;

beforeAll(async () => {
  keyId = (await makeKey(servers.db, partner.organizationId)).id;
});

const commit = (writes: PreparedStatements) => inTransaction(servers.db, (tx) => write(tx, writes));

it.each(
  Object.entries(CASES),
)("a write that relies on outdated rows raises an error and writes nothing: %s", async (_, { meanwhile, writes }) => {
  const two = await twoVouchers();
  await commit(meanwhile(two));
  const before = await dumpRows(servers.db);
  await expect(commit(writes(two))).rejects.toMatchObject({ code: "VS001" });
  expect(await dumpRows(servers.db)).toEqual(before);
});

it.each(
  Object.entries(CASES).filter(([, { needsMeanwhile }]) => !needsMeanwhile),
)("a write that relies on current rows succeeds: %s", async (_, { writes }) => {
  const two = await twoVouchers();
  const before = await dumpRows(servers.db);
  await commit(writes(two));
  expect(await dumpRows(servers.db)).not.toEqual(before);
});

async function twoVouchers(): Promise<Two> {
  const issued = await issueVouchers(servers.db, partner, 2, {
    windows: { claim: { opensAt: null, closesAt: null } },
  });
  return inTransaction(servers.db, async (tx) => {
    const ids = issued.map(({ id }) => id);
    const { now, vouchers } = await readLockedVouchers(tx, ids);
    return { now, both: ids.flatMap((id) => vouchers.get(id) ?? []), partner, keyId };
  });
}
