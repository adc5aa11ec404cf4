import type { Command } from "commander";
import type { Host } from "../cli/command.ts";
import { ServersUnavailable } from "../cli/exit-code.ts";
import { buildProgram } from "../cli/program.ts";
import { CONFIG_PARTS } from "../open/config-parts.ts";
import { WING_ACTS } from "../open/wing-acts.ts";
import { loadParts, WING_GRANTS } from "../open/wings.ts";
import { readGivenServers, resolveFiles } from "../platform/config.ts";
import { assertSameServers, findStart, LOCAL_DIRECTORY, withLastStart, withSettings } from "./directory.ts";
import { user } from "./user-command.ts";

const OF_WINGS = await loadParts("commands");

const HOST: Host = {
  queues: CONFIG_PARTS.queues,
  grants: WING_GRANTS,
  readEnvironment: () => withLastStart(process.env),
  async useServers() {
    const env = resolveFiles(process.env, CONFIG_PARTS);
    const { databaseUrl, redisUrl } = readGivenServers(env);
    if (databaseUrl !== null) return { databaseUrl, redisUrl, env, release: async () => undefined };
    const { chooseServers, webhookEnvOf } = await import("./servers.ts");
    assertSameServers({ databaseUrl, redisUrl });
    const servers = await chooseServers({ databaseUrl, redisUrl }, (line) => console.error(line)).catch(
      (error: Error) => {
        throw new ServersUnavailable(error.message, { cause: error });
      },
    );
    const { migrateDatabase } = await import("../platform/db/migrate.ts");
    await migrateDatabase(servers.databaseUrl, { onWait: (message) => console.error(message) });
    const settings = withSettings(findStart(LOCAL_DIRECTORY), env);
    return { ...servers, env: { ...webhookEnvOf(servers, settings), ...settings } };
  },
};

/** Builds `voucherctl`, with the commands of optional features (wings), on the configured or the embedded servers. */
export function buildVoucherctl(): Command {
  return buildProgram([...OF_WINGS, { member: [user] }], WING_ACTS, HOST);
}
