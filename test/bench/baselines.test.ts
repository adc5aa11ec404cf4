import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PartnerClient, partnerClient, type Reply } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { CASES } from "./cases.ts";
import { type ContenderId, type RunningContender, startContender } from "./contenders.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Time limit on a busy machine. Milliseconds. */
const TIMEOUT_MS = 240_000;

/** The comparable part of an answer; the rest is random or depends on the time. Baselines do not mark a reused reference. */
function shape({ status, body: { otherVoucher: _, ...body } }: Reply) {
  return { status, code: body.code, alreadyConfirmed: body.alreadyConfirmed, fields: Object.keys(body).sort() };
}

// A comparison makes sense only with baselines that do the same work as the service.
describe.each<ContenderId>(["a", "d"])("baseline %s", (id) => {
  let servers: TestServers;
  let directory: string;
  let service: RunningContender;
  let baseline: RunningContender;

  beforeAll(async () => {
    servers = await openTestServers();
    directory = mkdtempSync(join(tmpdir(), "voucher-baseline-"));
    const setup = {
      root: ROOT,
      databaseUrl: servers.databaseUrl,
      redisUrl: servers.redisUrl,
      redisPids: [],
      env: {
        LOG_LEVEL: "info",
        OPS_TOKEN: "ops-token-of-a-baseline-test",
        RESERVATION_TOKEN_SECRET: "reservation-token-secret-of-a-test",
      },
      directory,
    };
    service = await startContender("service", setup);
    baseline = await startContender(id, setup);
  }, TIMEOUT_MS);

  afterAll(async () => {
    await Promise.all([service?.end(), baseline?.end()]);
    await servers?.close();
    rmSync(directory, { recursive: true, force: true });
  }, TIMEOUT_MS);

  /** Sends the same requests, with different vouchers, to the service and to the baseline. Returns the answers of each. */
  async function onBoth(play: (client: PartnerClient, codes: string[]) => Promise<Reply[]>) {
    const stranger = await makePartner(servers.db);
    const foreign = await issueVouchers(servers.db, stranger, 1);
    const answers: Reply[][] = [];
    for (const contender of [service, baseline]) {
      const partner = await makePartner(servers.db);
      const { key } = await makeKey(servers.db, partner.organizationId);
      const own = await issueVouchers(servers.db, partner, 4);
      const codes = [...own, ...foreign].map(({ code }) => code);
      answers.push(await play(partnerClient(`http://127.0.0.1:${contender.ports[0]}`, key), codes));
    }
    return answers.map((replies) => replies.map(shape));
  }

  it(
    "answers redeems and writes the database like the service",
    async () => {
      const [served, answered] = await onBoth(async (client, [first, second, , , foreign]) => [
        await client.redeem({ code: first, externalRef: "order-1", note: "till 4" }),
        await client.redeem({ code: first, externalRef: "order-1" }),
        await client.redeem({ code: second, externalRef: "order-1" }),
        await client.redeem({ code: first, externalRef: "order-2" }),
        await client.redeem({ code: foreign, externalRef: "order-3" }),
        await client.redeem({ code: "7Q4K-9MZX-2HTB-W8RC", externalRef: "order-4" }),
        await client.redeem({ code: second }),
      ]);
      expect(answered).toEqual(served);
      expect(answered?.map(({ status }) => status)).toEqual([200, 200, 200, 409, 404, 404, 400]);
      await assertInvariants(servers.db);
    },
    TIMEOUT_MS,
  );

  it.runIf(CASES.checkout.contenders.some((one) => one === id))(
    "answers checkouts and writes the database like the service",
    async () => {
      const [served, answered] = await onBoth(async (client, [, , third, fourth, foreign]) => {
        const reserved = await client.reserve(third ?? "");
        return [
          await client.lookUp(third ?? ""),
          reserved,
          await client.reserve(third ?? ""),
          await client.lookUp(third ?? ""),
          await client.redeem({ ticket: reserved.body.ticket, token: reserved.body.token, externalRef: "order-5" }),
          await client.redeem({ ticket: reserved.body.ticket, externalRef: "order-6" }),
          await client.redeem({ code: fourth, token: "nonsense", externalRef: "order-7" }),
          await client.lookUp(foreign ?? ""),
        ];
      });
      expect(answered).toEqual(served);
      expect(answered?.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 409, 409, 404]);
      await assertInvariants(servers.db);
    },
    TIMEOUT_MS,
  );

  it(
    "redeems a voucher once in 20 simultaneous requests",
    async () => {
      const [served, answered] = await onBoth(async (client, [first]) => {
        // On a slow machine the last requests get voucher_busy.
        const redeem = async (externalRef: string): Promise<Reply> => {
          const reply = await client.redeem({ code: first, externalRef });
          return reply.body.code === "voucher_busy" ? redeem(externalRef) : reply;
        };
        return await Promise.all(Array.from({ length: 20 }, (_, n) => redeem(`rush-${n}`)));
      });
      const statuses = (replies: typeof served) => replies?.map(({ status }) => status).sort();
      expect(statuses(answered)).toEqual(statuses(served));
      expect(statuses(answered)).toEqual([200, ...Array(19).fill(409)]);
      await assertInvariants(servers.db);
    },
    TIMEOUT_MS,
  );
});
