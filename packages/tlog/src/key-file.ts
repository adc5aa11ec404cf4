import { writeFile } from "node:fs/promises";
import { formatSecretKey, isKeyName, type KeyUse, makeSigner } from "./note.ts";

/** A key file cannot be made with this name or in this place. */
export class KeyNotMade extends Error {}

/** Makes a key, writes it to a new file that only its owner can read, and returns its vkey. @throws KeyNotMade */
export async function writeKeyFile(use: KeyUse, name: string, file: string): Promise<string> {
  if (!isKeyName(name)) throw new KeyNotMade("A name has no spaces, no plus signs and no control characters.");
  const seed = crypto.getRandomValues(new Uint8Array(32));
  await writeFile(file, `${await formatSecretKey(use, name, seed)}\n`, { mode: 0o600, flag: "wx" }).catch((error) => {
    if (error.code !== "EEXIST") throw error;
    throw new KeyNotMade(`${file} exists already. A key file is never overwritten.`);
  });
  return (await makeSigner(use, name, seed)).text;
}
