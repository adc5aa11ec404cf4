import { resolve } from "node:path";
import { CONFIG_PARTS } from "../open/config-parts.ts";
import { ConfigError, readGivenServers, resolveFiles } from "../platform/config.ts";
import { assertGiven, findStart, LOCAL_DIRECTORY, readSaved, type Start, withSettings } from "./directory.ts";
import { firstFreePort } from "./ports.ts";
import { readArguments } from "./read-arguments.ts";
import { addUser, findUsers, lockUsers, removeUser } from "./server-users.ts";
import { findRunningServers } from "./servers.ts";
import { serviceEnvironment } from "./service-environment.ts";

// Loaded before the program of `npm run api` and `npm run worker`. If the environment does not name both servers, the
// process joins the running `npm start`: it uses the servers and variables of `npm start`, and ends with it.
const role = process.argv[1]?.endsWith("workers/main.ts") ? "worker" : "api";

const HELP = {
  worker: `Usage: npm run worker

Runs a worker. While npm start runs, it joins it: it finds the servers by itself
and ends with it. Ctrl-C ends it alone, and loses nothing.`,
  api: `Usage: npm run api

Runs an API. While npm start runs, it joins it: it finds the servers by itself,
listens on the next free port, and ends with it. Ctrl-C ends it alone.

  PORT=4000 npm run api       another port, or the next one that is free`,
}[role];

const MORE_HELP = `
With DATABASE_URL and REDIS_URL it runs on these servers and joins nothing.
docs/configuration.md leads to every variable.`;

/** Variables that workers never read. */
const OF_APIS = ["OPS_TOKEN", "OPS_DATABASE_URL", "ALERT_URL", "ALERT_SECRET"];
/** How often a process checks that the joined `npm start` still runs. Milliseconds. */
const LOOK_EVERY_MS = 500;

readArguments({}, `${HELP}\n${MORE_HELP}`, () => undefined);
try {
  const given = resolveFiles(process.env, CONFIG_PARTS);
  const { databaseUrl, redisUrl } = readGivenServers(given);
  if (databaseUrl === null || redisUrl === null) await join(given);
} catch (error) {
  console.error((error as Error).message);
  process.exit(error instanceof ConfigError ? 78 : 1);
}

async function join(given: NodeJS.ProcessEnv): Promise<void> {
  const start = findStart(LOCAL_DIRECTORY);
  const missing = ["DATABASE_URL", "REDIS_URL"].filter((name) => !given[name]);
  if (start === null) {
    throw new ConfigError(
      `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} not set, and no npm start runs in this ` +
        "folder that this could join.",
    );
  }
  assertSame(start, given);
  const servers = findRunningServers(readGivenServers(given));
  const env = await serviceEnvironment(withSettings(start, given), servers);
  const isApi = role === "api";
  // Removes the variables that name files with secrets, because the secrets themselves are now in the environment.
  for (const name of Object.keys(process.env)) if (name.endsWith("_FILE") && !(name in env)) delete process.env[name];
  Object.assign(process.env, {
    ...withoutUnset(env),
    ...(servers.embedded && !env.LOG_KEY_FILE && readSaved(LOCAL_DIRECTORY).log),
    // Only workers get the signing key of the transparency log.
    ...(isApi && { LOG_KEY_FILE: "", BASE_URL: env.BASE_URL || start.baseUrl }),
    ...(await takePorts(start, env)),
  });
  const timer = setInterval(() => {
    if (findStart(LOCAL_DIRECTORY, start.pid) !== null) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
  }, LOOK_EVERY_MS).unref();
  const address = isApi ? ` at http://localhost:${process.env.PORT}` : "";
  console.error(
    `This ${isApi ? "API" : "worker"} joins npm start${address}. Ctrl-C ends it; it ends with npm start, too.`,
  );
}

/**
 * Reserves the ports on which this process listens, until it ends: those that its environment names. If PORT is missing
 * or a port is in use, chooses the next free port. An environment that was copied from the running `npm start` names
 * ports that are in use.
 */
async function takePorts(start: Start, env: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const wanted = {
    ...(env.METRICS_PORT && { METRICS_PORT: env.METRICS_PORT }),
    ...(role === "api" && { PORT: env.PORT || String(start.port + 1) }),
  };
  const root = resolve(LOCAL_DIRECTORY);
  const chosen: Record<string, string> = {};
  await lockUsers(root, async () => {
    const others = findUsers(root).flatMap(({ ports = [] }) => ports);
    for (const [name, text] of Object.entries(wanted)) {
      // Skips a text that is not a port number: readConfig refuses it later. 0 means any free port.
      if (!/^[1-9]\d{0,4}$/.test(text)) continue;
      const port = await firstFreePort(Number(text), [...others, ...Object.values(chosen).map(Number)]);
      chosen[name] = String(port);
      if (env[name] && port !== Number(text))
        console.error(`${name} is ${text}, which another process uses. This ${role} uses ${port}.`);
    }
    addUser(root, { joined: start.pid, ports: Object.values(chosen).map(Number) });
  });
  process.on("exit", () => removeUser(root));
  return chosen;
}

/**
 * Asserts that the environment has the servers and secrets that the operator gave to `npm start`, and no other server.
 * Cannot compare their values, which are not saved. Workers do not need {@link OF_APIS}.
 * @throws ConfigError
 */
function assertSame({ own }: Start, given: NodeJS.ProcessEnv): void {
  const needed = own.filter((name) => role === "api" || !OF_APIS.includes(name));
  assertGiven(needed.filter((name) => !given[name]));
  for (const name of ["DATABASE_URL", "REDIS_URL"]) {
    if (given[name] && !own.includes(name)) {
      throw new ConfigError(
        `${name} is set, but the running npm start uses another server. Unset it to join, or set both ` +
          "DATABASE_URL and REDIS_URL.",
      );
    }
  }
}

function withoutUnset(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));
}
