import { execFileSync, spawnSync } from "node:child_process";
import { installDebianPackages } from "../../src/local/debian-packages.ts";

/** A service of a compose file, as docker compose prints it with variables resolved. */
export interface ComposedService {
  image: string;
  entrypoint?: string[] | null;
  command?: string[] | null;
  environment?: Record<string, string | null>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test?: string[] };
  volumes?: (string | { type: string; source: string; target: string; read_only?: boolean })[];
  [setting: string]: unknown;
}

/** The installed docker compose. */
export interface ComposeTool {
  command: readonly string[];
  /** Version 1 writes only YAML. */
  writesJson: boolean;
}

const COMMANDS = [["docker", "compose"], ["docker-compose"]];
const PROFILES = ["admin", "ha", "ha-admin", "ha-log", "log", "observability", "test", "tls"].flatMap((profile) => [
  "--profile",
  profile,
]);

/** Finds or installs docker compose, which reads files without an engine. Returns null, with a warning, when that fails. */
export function findComposeTool(): ComposeTool | null {
  const existing = findInstalled();
  if (existing !== null) return existing;
  installDebianPackages("docker-compose", ["docker-compose"], console.log);
  const installed = findInstalled();
  if (installed === null) console.warn("SKIPPED: docker compose is missing and cannot be installed.");
  return installed;
}

function findInstalled(): ComposeTool | null {
  for (const command of COMMANDS) {
    const [program = "", ...args] = command;
    if (spawnSync(program, [...args, "version"]).status !== 0) continue;
    const help = spawnSync(program, [...args, "config", "--help"], { encoding: "utf8" });
    return { command, writesJson: help.stdout.includes("--format") };
  }
  return null;
}

/**
 * Reads the compose file of a folder with docker compose, its `.env` and every profile, but without this process's environment.
 * @throws Error with the message of docker compose when it refuses the file.
 */
export function readComposeFile(tool: ComposeTool, directory: string): Record<string, ComposedService> {
  const json = tool.writesJson ? ["--format", "json"] : [];
  const [program = "", ...args] = [...tool.command, ...PROFILES, "config", ...json];
  const read = spawnSync(program, args, { cwd: directory, env: { PATH: process.env.PATH ?? "" }, encoding: "utf8" });
  if (read.status !== 0) throw new Error(read.stderr);
  return JSON.parse(tool.writesJson ? read.stdout : toJson(read.stdout)).services;
}

/** Converts YAML to JSON with Python. Version 1 of docker compose is a Python program, so Python and its YAML parser are installed. */
function toJson(yaml: string): string {
  const convert = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)";
  return execFileSync("python3", ["-c", convert], { input: yaml, encoding: "utf8" });
}
