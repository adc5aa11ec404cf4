import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type PartnerClient, partnerClient, type Reply } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { type ContenderId, canPlay, type RunningContender, startContender } from "./contenders.ts";

/** A start takes seconds on a busy machine. Milliseconds. */
const PATIENCE_MS = 240_000;

/** What of an answer must be alike: the rest is random, or a matter of time. */
function shape({ status, body }: Reply) {
  return { status, code: body.code, alreadyConfirmed: body.alreadyConfirmed, fields: Object.keys(body).sort() };
}

// A baseline that does less than the service would be measured against nothing.
describe.each<ContenderId>(["a", "a-steps", "b", "d"])("baseline %s", (id) => {
  let servers: TestServers;
  let directory: string;
  let service: RunningContender;
  let baseline: RunningContender;

  beforeAll(async () => {
    servers = await openTestServers();
    directory = mkdtempSync(join(tmpdir(), "voucher-baseline-"));
    const surroundings = {
      databaseUrl: servers.databaseUrl,
      redisUrl: () => servers.redisUrl,
      env: {
        LOG_LEVEL: "info",
        OPS_TOKEN: "ops-token-of-a-baseline-test",
        RESERVATION_TOKEN_SECRET: "reservation-token-secret-of-a-test",
      },
      logDirectory: directory,
      profileDirectory: null,
    };
    service = await startContender("service", surroundings);
    baseline = await startContender(id, surroundings);
  }, PATIENCE_MS);

  afterAll(async () => {
    await Promise.all([service?.end(), baseline?.end()]);
    await servers?.close();
    rmSync(directory, { recursive: true, force: true });
  }, PATIENCE_MS);

  /** Plays the same on the service and on the baseline, with vouchers of their own, and returns what each answered. */
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
    "answers redeems as the service does, and leaves what the service leaves",
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
    PATIENCE_MS,
  );

  it.runIf(canPlay(id, "checkout"))(
    "answers checkouts as the service does, and leaves what the service leaves",
    async () => {
      const [served, answered] = await onBoth(async (client, [, , third, fourth, foreign]) => {
        const held = await client.reserve(third ?? "");
        return [
          await client.lookUp(third ?? ""),
          held,
          await client.reserve(third ?? ""),
          await client.lookUp(third ?? ""),
          await client.redeem({ ticket: held.body.ticket, token: held.body.token, externalRef: "order-5" }),
          await client.redeem({ ticket: held.body.ticket, externalRef: "order-6" }),
          await client.redeem({ code: fourth, token: "nonsense", externalRef: "order-7" }),
          await client.lookUp(foreign ?? ""),
        ];
      });
      expect(answered).toEqual(served);
      expect(answered?.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 409, 409, 404]);
      await assertInvariants(servers.db);
    },
    PATIENCE_MS,
  );

  it(
    "burns a voucher once when twenty want it",
    async () => {
      const [served, answered] = await onBoth(async (client, [first]) => {
        // On a slow machine the last in the row's queue are told to come again; they do.
        const redeem = async (externalRef: string) => {
          for (;;) {
            const reply = await client.redeem({ code: first, externalRef });
            if (reply.body.code !== "voucher_busy") return reply;
          }
        };
        return await Promise.all(Array.from({ length: 20 }, (_, n) => redeem(`rush-${n}`)));
      });
      const statuses = (replies: typeof served) => replies?.map(({ status }) => status).sort();
      expect(statuses(answered)).toEqual(statuses(served));
      expect(statuses(answered)).toEqual([200, ...Array(19).fill(409)]);
      await assertInvariants(servers.db);
    },
    PATIENCE_MS,
  );
});
