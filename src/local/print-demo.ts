import { parseArgs } from "node:util";
import { openAdminContext } from "../acts/open-acts.ts";
import { CONFIG_PARTS } from "../open/config-parts.ts";
import { loadParts } from "../open/wings.ts";
import { readAddress, readConfig, readGivenServers } from "../platform/config.ts";
import { openLogger } from "../platform/logger.ts";
import { makeDemo, showDemo } from "./demo.ts";
import { assertSameServers, LOCAL_DIRECTORY, withLastStart } from "./directory.ts";
import { chooseServers } from "./servers.ts";
import { mintUserToken } from "./user-keys.ts";

// `npm run demo`: makes a demo organization on the running service, and prints its key, its codes and the same commands
// as a first `npm start`. In production, the organization is a sandbox. Optional features (wings) can add to the demo,
// each through an option.

/** How long the printed tokens are valid. Milliseconds. */
const TOKEN_MS = 86_400_000;

try {
  const parts = await loadParts("demo");
  const given = parseArgs({ options: Object.fromEntries(parts.map(({ option }) => [option, { type: "boolean" }])) });
  const further = parts.filter(({ option }) => given.values[option]);
  const env = withLastStart(process.env);
  await assertStarted(readAddress(env));
  const configured = readGivenServers(env);
  assertSameServers(configured);
  const servers = await chooseServers(configured, (line) => console.error(line));
  const { databaseUrl, redisUrl } = servers;
  // Leaves out the secrets of the embedded servers, because the demo uses none.
  const config = readConfig({ ...env, DATABASE_URL: databaseUrl, REDIS_URL: redisUrl }, CONFIG_PARTS);
  const admin = openAdminContext(databaseUrl, openLogger("fatal", "demo"));
  try {
    if (further.length > 0 && (!servers.embedded || env.AUTH_JWKS_URL)) {
      throw new Error(
        `--${further[0]?.option} needs the embedded database, without AUTH_JWKS_URL: only it accepts the demo's users.`,
      );
    }
    const demo = await makeDemo(admin, config.production);
    console.log(showDemo(demo, config.baseUrl));
    const mintToken = (user: string) => mintUserToken(LOCAL_DIRECTORY, user, TOKEN_MS, config.users);
    for (const { show } of further) console.log(await show({ ...admin, config }, demo, mintToken));
    console.log(`Each run leaves another organization, which cannot be removed: this is
${demo.organizationId}. When you no longer need its key:
npm run voucherctl -- key revoke ${demo.keyId}`);
  } finally {
    await admin.close();
    await servers.release();
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}

/** @throws Error when no API answers, neither on this machine's port nor at the public address. */
async function assertStarted({ port, baseUrl }: { port: number; baseUrl: string }): Promise<void> {
  const health = [`http://127.0.0.1:${port}`, baseUrl].map(async (address) => {
    const { ok } = await fetch(`${address}/healthz`, { signal: AbortSignal.timeout(5_000) });
    if (!ok) throw new Error(`${address} is not the service`);
  });
  await Promise.any(health).catch((cause) => {
    throw new Error(`Start the service first: npm start. Nothing answers at ${baseUrl}.`, { cause });
  });
}
