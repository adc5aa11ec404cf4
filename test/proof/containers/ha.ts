import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openDeployment } from "./deployment.ts";

// Tests the failures that the profile ha survives.

const PG_NODES = ["ha-pg-1", "ha-pg-2", "ha-pg-3"];
const REDIS_NODES = [1, 2, 3, 4, 5, 6].map((n) => `ha-redis-${n}`);
let deployment: Awaited<ReturnType<typeof openDeployment>>;
let codes: string[] = [];

before(async () => {
  const psql = "psql -h ha-postgres -U postgres -d vouchers";
  deployment = await openDeployment({
    urls: ["http://127.0.0.1:13080", "http://127.0.0.1:13082"],
    voucherctl: "ha-voucherctl",
    psql: ["ha-pg-1", "sh", "-c", `PGPASSWORD=$PGPASSWORD_SUPERUSER exec ${psql} "$@"`, "psql"],
  });
});

after(() => deployment.close());

interface Member {
  Member: string;
  Role: string;
  State: string;
}

async function patroni(on: string): Promise<Member[]> {
  return JSON.parse(await deployment.compose("exec", "-T", on, "patronictl", "list", "-f", "json"));
}

/** Waits until one Postgres node leads and two follow. Returns the leader's name. */
async function untilWhole(): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const members = await patroni(PG_NODES[attempt % 3] as string).catch(() => []);
    const leader = members.find(({ Role }) => Role === "Leader");
    if (leader !== undefined && members.filter(({ State }) => State === "streaming").length === 2) return leader.Member;
    assert.ok(attempt < 60, JSON.stringify(members));
    await sleep(2_000);
  }
}

/**
 * Redeems while servers fail. Expects that all confirmed redemptions then exist. Prints the slowest call's duration.
 */
async function redeemDuring(what: string, fault: () => Promise<unknown>): Promise<void> {
  deployment.slowestMs = 0;
  codes = await deployment.redeemDuring(codes, fault);
  await deployment.assertProved();
  process.stdout.write(`${what}: the slowest call was answered after ${Math.round(deployment.slowestMs)} ms\n`);
}

describe("docker compose with the profile ha", () => {
  it("docker compose with the profile ha starts all processes, and every container becomes healthy", async () => {
    const services = ["ha-api-1", "ha-api-2", "ha-worker"];
    await deployment.compose("up", "-d", "--build", "--wait", "--wait-timeout", "300", "--quiet-pull", ...services);
    await deployment.compose("up", "-d", "--wait", "ha-log");
    codes = await deployment.supply(6_000);
  });

  it("docker compose with the profile ha loses no redemption when the primary's container is killed", async () => {
    const leader = await untilWhole();
    await redeemDuring("primary killed", async () => {
      await deployment.run("docker", "kill", "-s", "KILL", await deployment.idOf(leader));
      await deployment.compose("up", "-d", "--no-recreate", leader);
      assert.notEqual(await untilWhole(), leader);
    });
  });

  it("docker compose with the profile ha loses no redemption in a switchover", async () => {
    const leader = await untilWhole();
    await redeemDuring("switchover", async () => {
      await deployment.compose("exec", "-T", leader, "patronictl", "switchover", "--leader", leader, "--force");
      assert.notEqual(await untilWhole(), leader);
    });
  });

  it("docker compose with the profile ha loses no redemption when a Redis master is killed and returns", async () => {
    const roleOf = async (node: string) =>
      (await deployment.compose("exec", "-T", node, "redis-cli", "role")).split("\n")[0];
    const roles = await Promise.all(REDIS_NODES.map(roleOf));
    const master = REDIS_NODES[roles.indexOf("master")] as string;
    await redeemDuring("Redis master killed", async () => {
      await deployment.run("docker", "kill", "-s", "KILL", await deployment.idOf(master));
      const isReplaced = async () => {
        const now = await Promise.all(REDIS_NODES.map((node) => roleOf(node).catch(() => "gone")));
        return now.filter((role) => role === "master").length === 3;
      };
      for (let attempt = 0; !(await isReplaced()); attempt++) {
        assert.ok(attempt < 60, "no replica took over");
        await sleep(500);
      }
    });
    await redeemDuring("Redis master returned", () =>
      deployment.compose("up", "-d", "--no-recreate", "--wait", master),
    );
  });
});
