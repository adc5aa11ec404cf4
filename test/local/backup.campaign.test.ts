import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { identify } from "../../src/local/process-identity.ts";
import { addUser, lockUsers, removeUser } from "../../src/local/server-users.ts";
import { type Started, startNode } from "../support/child-process.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { interrupt, startIn, untilReady } from "../support/npm-start.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { until, untilStarted } from "../support/until.ts";

const script = (path: string) => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));
const { HOME = "", PATH = "", NODE_COMPILE_CACHE } = process.env;

const directory = mkdtempSync(join(tmpdir(), "voucher-backup-"));
// Under root, Postgres runs as another user, who needs access to the folder.
chmodSync(directory, 0o755);
afterAll(() => rmSync(directory, { recursive: true }));

const data = join(directory, ".data");
const port = await findSteadyPort();

/** A client with the demo's key, and the code that it redeems before the backup. */
let till: PartnerClient;
let before: string;

const backup = (...args: string[]) => run("local/backup.ts", "backup", ...args);
const restore = (...args: string[]) => run("local/backup.ts", "restore", ...args);

it("npm run backup and npm run restore exit 2 for wrong usage, and 1 without a database or a backup", () => {
  for (const [command, name] of [
    [backup, "backup"],
    [restore, "restore"],
  ] as const) {
    expect(command("--help")).toMatchObject({
      status: 0,
      text: expect.stringMatching(`^Usage: npm run ${name} -- FILE`),
    });
    for (const args of [[], ["a", "b"], ["--force"]]) expect(command(...args).status, args.join()).toBe(2);
  }
  expect(backup("b.tar")).toEqual({ status: 1, text: "There is no embedded database in .data.\n" });
  expect(restore("b.tar")).toMatchObject({ status: 1, text: expect.stringMatching(/^There is no file .*b\.tar\.\n$/) });
  spawnSync("tar", ["-cf", join(directory, "other.tar"), "-C", script("platform"), "times.ts"]);
  expect(restore("other.tar").text).toMatch(
    /other\.tar is not a whole file of npm run backup: it lacks servers\.json\./,
  );
  expect(readdirSync(directory)).toEqual(["other.tar"]);
});

it("a restored database has the backup's redemptions and feed, and the service refuses it until db adopt", async () => {
  const first = start();
  await untilReady(first);
  const [key = ""] = await untilStarted(() => /pvk_\w+/.exec(first.output()));
  [, before = ""] = /CODE=(\S+)/.exec(first.output()) ?? [];
  const [, after = ""] = await untilStarted(() => /Other codes: (\S+)/.exec(first.output()));
  till = partnerClient(`http://127.0.0.1:${port}`, key);
  expect((await till.redeem({ code: before, externalRef: "before" })).status).toBe(200);
  const redemptions = { types: "voucher.instance.redeemed" };
  const redeemedAfter = async (after: object) => {
    const { body } = await till.feed({ ...redemptions, ...after });
    return body.events.length === 0 ? null : body;
  };
  const kept = (await until(() => redeemedAfter({}))).nextCursor;

  const file = join(directory, "b.tar");
  expect(backup("b.tar")).toMatchObject({ status: 0, text: expect.stringContaining("The backup is in b.tar.") });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(backup("b.tar")).toEqual({ status: 1, text: "b.tar exists already.\n" });
  expect((await till.redeem({ code: after, externalRef: "after" })).status).toBe(200);
  const lost = (await until(() => redeemedAfter({ after: kept }))).nextCursor;
  expect(restore("b.tar")).toEqual({ status: 1, text: "Processes use the database. Stop npm start first.\n" });
  expect(await interrupt(first)).toBe(0);

  const restored = restore("b.tar");
  expect(restored, restored.text).toMatchObject({
    status: 0,
    text: expect.stringMatching(
      /Restored 20 vouchers with 21 events\. Every history verifies\.\n[\s\S]*1\. .*erasure replay[\s\S]*db adopt/,
    ),
  });
  expect(readdirSync(data).filter((name) => name.startsWith("postgres."))).toHaveLength(1);
  const refused = start();
  await until(async () => {
    const { text } = await fetch(`http://127.0.0.1:${port}/readyz`)
      .then(async (response) => ({ text: await response.text() }))
      .catch(() => ({ text: "" }));
    return text.includes("The files of this database server were set back");
  });
  await interrupt(refused);
  expect(run("cli/main.ts", "db", "adopt", "--yes").status).toBe(0);

  const second = start();
  await untilReady(second);
  expect((await till.redeem({ code: before, externalRef: "before" })).body).toMatchObject({ alreadyConfirmed: true });
  const refusal = {
    status: 400,
    body: { error: expect.stringMatching(/^after names an event that .* no longer has/) },
  };
  expect(await till.feed({ after: lost })).toMatchObject(refusal);
  expect((await till.redeem({ code: after, externalRef: "after" })).body).toMatchObject({ alreadyConfirmed: false });
  // The feed continues from a cursor that the backup contains. The repeated redeem's event may have the lost event's
  // position in the feed.
  const { events } = await until(() => redeemedAfter({ after: kept }));
  expect(events.map(({ payload }: { payload: string }) => JSON.parse(payload).data.externalRef)).toEqual(["after"]);
  expect(await till.feed({ after: lost })).toMatchObject(refusal);
  expect(await interrupt(second)).toBe(0);
});

it("npm run restore creates a deleted .data again, with the backup's redemptions and the log's anchor", async () => {
  rmSync(data, { recursive: true });
  expect(restore("b.tar").status).toBe(0);
  expect(existsSync(join(data, "log/anchor"))).toBe(true);
  const third = start();
  await untilReady(third);
  expect((await till.redeem({ code: before, externalRef: "before" })).body).toMatchObject({ alreadyConfirmed: true });
  expect(await interrupt(third)).toBe(0);
});

it("npm run restore stops a server that a killed npm start left, and moves that server's files away", async () => {
  const killed = start();
  await untilReady(killed);
  const [postgres] = readFileSync(join(data, "postgres/postmaster.pid"), "utf8").split("\n").map(Number);
  killed.child.kill("SIGKILL");
  await killed.ended;
  expect(identify(postgres ?? 0)).not.toBeNull();
  expect(restore("b.tar")).toMatchObject({ status: 0, text: expect.stringContaining("The database of before is in") });
  expect(identify(postgres ?? 0)).toBeNull();
});

it("npm run restore stops if a process begins to use the database during the restore", async () => {
  let late: Started | undefined;
  await lockUsers(data, async () => {
    late = startNode([script("local/backup.ts"), "restore", "b.tar"], { HOME }, directory);
    await untilStarted(() => readdirSync(data).some((name) => name.startsWith("restore-")));
    addUser(data);
  });
  expect(await late?.ended).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^Processes use the database/),
  });
  removeUser(data);
});

const start = () => startIn(directory, port);

function run(path: string, ...args: string[]) {
  const env = { PATH, HOME, NODE_COMPILE_CACHE };
  const { status, stdout, stderr } = spawnSync(process.execPath, [script(path), ...args], {
    cwd: directory,
    env,
    encoding: "utf8",
  });
  return { status, text: stdout + stderr };
}
