import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Caller } from "../../../src/core/keys/caller.ts";
import type { Config } from "../../../src/platform/config.ts";
import { pooledRandomBytes } from "../../../src/platform/random.ts";
import { type PartnerClient, partnerClient, type Reply, untilDecided } from "../../support/client.ts";
import { assertInvariants } from "../../support/invariants.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { issueVouchers, makeKey, makePartner } from "../../support/supply.ts";
import { redeemInOneTransaction } from "./baselines/one-transaction.ts";
import { type ContenderId, type RunningContender, startContender } from "./contenders.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

// A comparison is meaningful only if the baselines do the same work as the service.
describe.each<ContenderId>(["a", "d"])("the benchmark's baseline %s", (id) => {
  let servers: TestServers;
  let directory: string;
  const running: RunningContender[] = [];

  beforeAll(async () => {
    servers = await openTestServers();
    directory = mkdtempSync(join(tmpdir(), "voucher-baseline-"));
    const secrets = {
      OPS_TOKEN: "ops-token-of-a-baseline-test",
      RESERVATION_TOKEN_SECRET: "secret-of-a-baseline-test-of-32-chars",
    };
    const env = { LOG_LEVEL: "info", ...secrets };
    const { databaseUrl, redisUrl } = servers;
    const setup = { root: ROOT, databaseUrl, redisUrl, redisPids: [], env, directory };
    for (const each of ["service", id] as const) running.push(await startContender(each, setup));
  });

  afterAll(async () => {
    await Promise.all(running.map((contender) => contender.end()));
    await servers?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Sends the same requests to the service and to the baseline. Both must answer alike, with these statuses. */
  async function expectSame(statuses: number[], play: (client: PartnerClient, codes: string[]) => Promise<Reply[]>) {
    const foreign = await issueVouchers(servers.db, await makePartner(servers.db), 1);
    const answers: Reply[][] = [];
    for (const { ports } of running) {
      const partner = await makePartner(servers.db);
      const { key } = await makeKey(servers.db, partner.organizationId);
      const own = await issueVouchers(servers.db, partner, 4);
      const codes = [...own, ...foreign].map(({ code }) => code);
      answers.push(await play(partnerClient(`http://127.0.0.1:${ports[0]}`, key), codes));
    }
    const [served, answered] = answers.map((replies) => replies.map(shape));
    expect(answered).toEqual(served);
    expect(answered?.map(({ status }) => status)).toEqual(statuses);
    await assertInvariants(servers.db);
  }

  it("the benchmark's baselines answer redeems and write to the database like the service", () =>
    expectSame([200, 200, 200, 409, 404, 404, 400], async (client, [first, second, , , foreign]) => [
      await client.redeem({ code: first, externalRef: "order-1", note: "till 4" }),
      await client.redeem({ code: first, externalRef: "order-1" }),
      await client.redeem({ code: second, externalRef: "order-1" }),
      await client.redeem({ code: first, externalRef: "order-2" }),
      await client.redeem({ code: foreign, externalRef: "order-3" }),
      await client.redeem({ code: "7Q4K-9MZX-2HTB-W8RC", externalRef: "order-4" }),
      await client.redeem({ code: second }),
    ]));

  it("the benchmark's baselines answer checkouts and write to the database like the service", () =>
    expectSame([200, 200, 200, 200, 200, 409, 409, 404], async (client, [, , third = "", fourth, foreign = ""]) => {
      const reserved = await client.reserve(third);
      const { ticket, token } = reserved.body;
      return [
        await client.lookUp(third),
        reserved,
        await client.reserve(third),
        await client.lookUp(third),
        await client.redeem({ ticket, token, externalRef: "order-5" }),
        await client.redeem({ ticket, externalRef: "order-6" }),
        await client.redeem({ code: fourth, token: "nonsense", externalRef: "order-7" }),
        await client.lookUp(foreign),
      ];
    }));

  it("only one of 20 simultaneous requests to a benchmark's baseline redeems the voucher", () =>
    expectSame([200, ...Array(19).fill(409)], async (client, [first]) => {
      const redeem = (externalRef: string) => untilDecided(() => client.redeem({ code: first, externalRef }));
      const replies = await Promise.all(Array.from({ length: 20 }, (_, n) => redeem(`rush-${n}`)));
      return replies.sort((one, other) => one.status - other.status);
    }));
});

it("the benchmark's baselines answer a repeated attempt as before, and another with `alreadyConfirmed`", async () => {
  const servers = await openTestServers();
  try {
    const { db } = servers;
    const partner = await makePartner(db);
    const { id: keyId } = await makeKey(db, partner.organizationId);
    const [{ code } = { code: "" }] = await issueVouchers(db, partner, 1);
    const caller = { organizationId: partner.organizationId, keyId } as Caller;
    const ctx = { pool: db, tokenSecrets: [], randomBytes: pooledRandomBytes, config: { baseUrl: "" } as Config };
    const run = (attempt: string) => redeemInOneTransaction(ctx, caller, { code, externalRef: "order-8" }, attempt);
    const first = await run("one");
    expect(first.alreadyConfirmed).toBe(false);
    expect(await run("one")).toEqual(first);
    expect(await run("other")).toEqual({ ...first, alreadyConfirmed: true });
  } finally {
    await servers.close();
  }
});

/**
 * Returns the comparable part of an answer. The rest is random or depends on the time. Baselines do not report that a
 * reference was already used for another voucher.
 */
function shape({ status, body: { otherVoucher: _, ...body } }: Reply) {
  return { status, code: body.code, alreadyConfirmed: body.alreadyConfirmed, fields: Object.keys(body).sort() };
}
