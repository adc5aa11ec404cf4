import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { installDebianPackages } from "../../src/local/debian-packages.ts";
import { startProgram } from "./child-process.ts";
import { findSteadyPort, isFree } from "./steady-port.ts";
import { untilStarted } from "./until.ts";

const PACKAGES = ["apache2", "libapache2-mod-security2", "modsecurity-crs"];
const CORE_RULES = "/usr/share/modsecurity-crs/owasp-crs.load";
const MODULES = ["mpm_event", "authz_core", "unique_id", "security2", "proxy", "proxy_http"];

/** The lines that docs/proxies.md adds to the rules. */
const OWN_RULES = resolve("docs/proxies/apache/core-rules.conf");

/** Whether Apache and the core rule set are installed, after trying to install Debian's packages. */
export function hasCoreRules(): boolean {
  if (!existsSync(CORE_RULES)) installDebianPackages("Apache with the core rule set", PACKAGES, console.warn);
  if (!existsSync(CORE_RULES)) console.warn(`SKIPPED: ${PACKAGES.join(", ")} cannot be installed; tests are skipped.`);
  return existsSync(CORE_RULES);
}

const configuration = (folder: string, port: number, target: string, level: number) => `
ServerRoot ${folder}
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
PidFile ${folder}/pid
ErrorLog ${folder}/errors
User nobody
Group nogroup
${MODULES.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join("\n")}
Include /etc/modsecurity/modsecurity.conf-recommended
SecRuleEngine On
SecAuditEngine Off
SecDataDir ${folder}
SecAction "id:900000,phase:1,pass,nolog,setvar:tx.paranoia_level=${level}"
Include ${OWN_RULES}
Include ${CORE_RULES}
AllowEncodedSlashes NoDecode
ProxyPreserveHost On
ProxyPass / ${target}/ nocanon
`;

/** Starts Apache with the core rule set at a paranoia level, in front of a server. */
export async function startApache(target: string, level: number) {
  const folder = mkdtempSync(join(tmpdir(), "voucher-apache-"));
  const port = await findSteadyPort();
  writeFileSync(join(folder, "apache.conf"), configuration(folder, port, target, level));
  const { child, ended, output } = startProgram("apache2", ["-D", "FOREGROUND", "-f", join(folder, "apache.conf")], {});
  await untilStarted(async () => {
    if (child.exitCode !== null) throw new Error(`Apache did not start: ${output()}`);
    return !(await isFree(port));
  });
  return {
    // The host must be a name, because rule 920350 counts an IP address against a call.
    url: `http://localhost:${port}`,
    /** Returns the rules that have matched since the previous call, with their numbers. */
    takeMatchedRules(): string[] {
      const log = join(folder, "errors");
      const lines = readFileSync(log, "utf8").matchAll(/\[id "(\d+)"\].*?\[msg "([^"]*)"\].*?\[uri "([^"]*)"/g);
      const found = Array.from(lines, ([, id, message, uri]) => `${id} ${message} ${uri}`);
      writeFileSync(log, "");
      return found;
    },
    async stop() {
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}
