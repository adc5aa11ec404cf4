import { readConfig, readGivenServers } from "../config.ts";
import { migrateDatabase } from "../db/migrate.ts";
import { openLog } from "../log.ts";
import { openAdminContext } from "../open-command.ts";
import { chooseServers } from "./choose-servers.ts";
import { makeDemo, showDemo } from "./demo.ts";

// `npm run demo`: a new demo organization with a key and unused codes, and the commands that the first `npm start` prints. `npm start`
// may run at the same time, but need not.

try {
  const servers = await chooseServers(readGivenServers(process.env), (line) => console.error(line));
  try {
    const { databaseUrl, redisUrl } = servers;
    // Without the secrets of embedded servers, because the demo uses none.
    const config = readConfig({ ...process.env, DATABASE_URL: databaseUrl, REDIS_URL: redisUrl });
    if (config.production)
      throw new Error("npm run demo creates vouchers to play with. NODE_ENV=production refuses it.");
    if (servers.embedded) await migrateDatabase(databaseUrl, { onWait: (message) => console.error(message) });
    const admin = openAdminContext(databaseUrl, openLog("fatal", "demo"));
    const demo = await makeDemo(admin).finally(() => admin.close());
    const ownIssuer = !servers.embedded || Boolean(process.env.AUTH_JWKS_URL);
    console.log(await showDemo(demo, config.baseUrl, ownIssuer ? null : config.users));
    if (!(await isRunning(config.port))) {
      console.log(
        `No API answers on port ${config.port}. Start it with npm start. If it runs on another port: PORT=… npm run demo`,
      );
    }
  } finally {
    await servers.release();
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

async function isRunning(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null);
  return response?.ok === true;
}
