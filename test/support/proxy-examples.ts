import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { startProgram } from "./child-process.ts";
import { findSteadyPort, isFree } from "./steady-port.ts";
import { untilStarted } from "./until.ts";

const DOCUMENT = "docs/proxies.md";
const FOLDER = "docs/proxies";
/** The text of each example by its path in the folder. */
export const FILES: ReadonlyMap<string, string> = new Map(
  globSync("*/*", { cwd: FOLDER }).map((name) => [name, readFileSync(join(FOLDER, name), "utf8")]),
);

/** An example of docs/proxies.md, as its table describes it. */
export interface ProxyExample {
  /** The name of the example's file, in the folder of its program. */
  name: string;
  program: "nginx" | "haproxy" | "caddy";
  /** The path of the service. Empty for the whole host. */
  path: string;
  /** Whether an encoded slash reaches the service in a path. */
  keepsSlashes: boolean;
}

/** Every example of the document. */
export const PROXY_EXAMPLES: readonly ProxyExample[] = Array.from(
  readFileSync(DOCUMENT, "utf8").matchAll(
    /^\| \[((nginx|haproxy|caddy)\/\S+)\]\(\S+\) \| (?:none|`(\S+)`) \| (arrives|is changed) \|$/gm,
  ),
  ([, name = "", program, path = "", slashes]) => ({
    name,
    program: program as ProxyExample["program"],
    path,
    keepsSlashes: slashes === "arrives",
  }),
);

/** nginx with only the API's address, as after `apt-get install nginx`: it uses HTTP/1.0 to the API. */
export function startPlainNginx(apiUrl: string) {
  const site = "server { listen 127.0.0.1:8080; location / { proxy_pass http://127.0.0.1:3000; } }";
  const name = "nginx/plain.conf";
  return startProxy({ name, program: "nginx", path: "", keepsSlashes: true }, apiUrl, new Map([[name, site]]));
}

/** The addresses at which the examples listen, and at which they expect the API. */
const LISTENS = /127\.0\.0\.1:8080/g;
const API = /127\.0\.0\.1:3000/g;
/** The name that Caddy would obtain a certificate for. */
const SITE = /^vouchers\.example\.com \{$/m;

/** The kinds of temporary files of nginx, each of which needs a folder of its own. */
const TEMPORARY = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

/** Makes the lines that nginx needs around the examples, without the folders of its package. */
const nginxAround = (site: string, folder: string) => `daemon off;
user ${process.getuid?.() === 0 ? "root" : "nobody"};
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr;
events {}
http {
  access_log off;
  ${TEMPORARY.map((kind) => `${kind}_temp_path ${folder}/${kind};`).join("\n  ")}
  include ${site};
}
`;

/** The arguments with which a program runs an example's file. `folder` is for the program's own files. */
const ARGUMENTS: Record<ProxyExample["program"], (site: string, folder: string) => string[]> = {
  nginx(site, folder) {
    writeFileSync(join(folder, "main.conf"), nginxAround(site, folder));
    return ["-p", folder, "-c", "main.conf", "-e", "stderr"];
  },
  haproxy: (site) => ["-db", "-f", "defaults.cfg", "-f", site],
  caddy: (site) => ["run", "--adapter", "caddyfile", "--config", site],
};

/** Starts a proxy with an example's files, with changed addresses only. Returns its URL with the service's path. */
export async function startProxy({ name, program, path }: ProxyExample, apiUrl: string, files = FILES) {
  const [port, adminPort] = [await findSteadyPort(), await findSteadyPort()];
  const directory = mkdtempSync(join(tmpdir(), "voucher-proxy-"));
  const address = `127.0.0.1:${port}`;
  for (const [file, code] of files) {
    if (!file.startsWith(`${program}/`)) continue;
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    const changed = code
      .replace(LISTENS, address)
      .replace(API, new URL(apiUrl).host)
      .replace(SITE, `http://${address} {\n\tbind 127.0.0.1`);
    writeFileSync(join(directory, file), changed);
  }
  const folder = join(directory, program);
  const args = ARGUMENTS[program](name.slice(program.length + 1), folder);
  const env = { HOME: directory, CADDY_ADMIN: `127.0.0.1:${adminPort}` };
  const started = startProgram(program, args, env, folder);
  let over = false;
  void started.ended.then(() => {
    over = true;
  });
  await untilStarted(async () => {
    if (over) throw new Error(`${program} ended with ${name}:\n${started.output()}`);
    return !(await isFree(port));
  });
  return {
    url: `http://${address}${path}`,
    async stop() {
      started.child.kill("SIGTERM");
      await started.ended;
      rmSync(directory, { recursive: true });
    },
  };
}
