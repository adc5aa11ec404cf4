import { readFileSync, statSync } from "node:fs";
import { parseSecretKey, type SignerKey } from "#tlog/note.ts";
import { NotAccepted, type Policy, parsePolicy } from "#tlog/policy.ts";
import type { Witness } from "#tlog/witness-client.ts";
import { UnusableFile } from "../platform/config.ts";
import type { VariableValues } from "../platform/environment.ts";
import type { tlogVariables } from "./declared.ts";

/** The settings for signing and publishing the log. Only workers of the queue `log` and commands have them. */
export interface TlogSettings {
  /** The log's name. */
  origin: string;
  /** The keys that sign each checkpoint: one key, or several during a key rotation. All have the log's name. */
  keys: SignerKey[];
  /** The paths of the files that contain the last signed checkpoint. */
  anchors: string[];
  policy: Policy;
  /** The policy's text, which `/log/policy` serves. */
  policyText: string;
  /** The policy's witnesses that have an address. */
  witnesses: Witness[];
}

/** The key file or the policy cannot be used. The message tells an operator why. */
export class TlogSettingsError extends UnusableFile {}

/**
 * Reads the key file and the policy.
 * @throws TlogSettingsError when no anchor is set, when other users can read the key file, or when a file is unusable.
 */
export async function readTlogSettings(
  config: VariableValues<typeof tlogVariables.table> & { keyFile: string },
): Promise<TlogSettings> {
  const keys = await readKeys(config.keyFile);
  const origin = keys[0]?.name ?? "";
  if (config.origin !== null && config.origin !== origin) {
    throw new TlogSettingsError(`LOG_ORIGIN is ${config.origin}, but the key in LOG_KEY_FILE is of ${origin}.`);
  }
  const defaultPolicy = `${keys.map(({ text }) => `log ${text}\n`).join("")}quorum none\n`;
  const policyText = config.policyFile === null ? defaultPolicy : readText("LOG_POLICY", config.policyFile);
  const policy = await parsePolicy(policyText).catch((error) => {
    throw error instanceof NotAccepted ? new TlogSettingsError(`LOG_POLICY: ${error.message}`) : error;
  });
  if (!policy.logs.some(({ key }) => keys.some(({ text }) => text === key.text))) {
    throw new TlogSettingsError("LOG_POLICY does not name this log's key.");
  }
  const witnesses = policy.witnesses.flatMap(({ key, url }) => (url === null ? [] : [{ key, url }]));
  if (config.anchors.length === 0) {
    throw new TlogSettingsError("LOG_KEY_FILE requires a memory of what was signed: set LOG_ANCHOR.");
  }
  return { origin, keys, anchors: config.anchors, policy, policyText, witnesses };
}

/** Reads a key file: one key per line, all with the same name. */
async function readKeys(file: string): Promise<SignerKey[]> {
  const text = readText("LOG_KEY_FILE", file);
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new TlogSettingsError(`Other users can read LOG_KEY_FILE. Run: chmod 600 ${file}`);
  }
  const lines = text.trimEnd().split("\n");
  const keys = await Promise.all(lines.map((line) => parseSecretKey("log", line)));
  if (!keys.every((key) => key !== null) || keys.some(({ name }) => name !== keys[0]?.name)) {
    throw new TlogSettingsError(`LOG_KEY_FILE does not hold a key: ${file}. Make one with: voucherctl log keygen`);
  }
  return keys;
}

function readText(variable: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new TlogSettingsError(`${variable} cannot be read: ${(error as Error).message}`);
  }
}
