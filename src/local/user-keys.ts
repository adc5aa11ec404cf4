import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";

const ALGORITHM = "EdDSA";
const KEY_ID = "embedded";

/** Creates the embedded servers' key pair once and returns the public key's URL. No other database trusts it. */
export async function useLocalUserKeys(directory: string): Promise<string> {
  const { privateFile, publicFile } = filesOf(directory);
  if (!existsSync(publicFile)) {
    mkdirSync(directory, { recursive: true });
    const { publicKey, privateKey } = await generateKeyPair(ALGORITHM, { crv: "Ed25519", extractable: true });
    const named = { kid: KEY_ID, alg: ALGORITHM, use: "sig" };
    writeFileSync(privateFile, JSON.stringify({ ...(await exportJWK(privateKey)), ...named }), { mode: 0o600 });
    writeFileSync(publicFile, JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), ...named }] }));
  }
  return pathToFileURL(publicFile).href;
}

/** Claims that tokens must have; null where none is required. */
export interface TokenClaims {
  issuer: string | null;
  audience: string | null;
}

/** Creates a user token for the embedded servers. */
export async function mintUserToken(
  directory: string,
  userId: string,
  ttlMs: number,
  { issuer, audience }: TokenClaims = { issuer: null, audience: null },
): Promise<string> {
  await useLocalUserKeys(directory);
  const key = await importJWK(JSON.parse(readFileSync(filesOf(directory).privateFile, "utf8")), ALGORITHM);
  return new SignJWT({ ...(issuer !== null && { iss: issuer }), ...(audience !== null && { aud: audience }) })
    .setProtectedHeader({ alg: ALGORITHM, kid: KEY_ID })
    .setSubject(userId)
    .setIssuedAt()
    .setExpirationTime(new Date(Date.now() + ttlMs))
    .sign(key);
}

function filesOf(directory: string): { privateFile: string; publicFile: string } {
  const root = resolve(directory);
  return { privateFile: join(root, "user-key.json"), publicFile: join(root, "user-keys.jwks.json") };
}
