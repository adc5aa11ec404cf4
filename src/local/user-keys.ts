import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";

const ALGORITHM = "EdDSA";
const KEY_ID = "embedded";

/**
 * Returns the URL of the public key that verifies user tokens on the embedded servers. Creates the key pair if it does
 * not exist. A process trusts the key only if its AUTH_JWKS_URL is this URL.
 */
export async function useLocalUserKeys(directory: string): Promise<string> {
  const [privateFile, publicFile] = [privateFileOf(directory), resolve(directory, "user-keys.jwks.json")];
  if (!existsSync(publicFile)) {
    mkdirSync(directory, { recursive: true });
    const { publicKey, privateKey } = await generateKeyPair(ALGORITHM, { crv: "Ed25519", extractable: true });
    const keyFields = { kid: KEY_ID, alg: ALGORITHM, use: "sig" };
    writeFileSync(privateFile, JSON.stringify({ ...(await exportJWK(privateKey)), ...keyFields }), { mode: 0o600 });
    writeFileSync(publicFile, JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), ...keyFields }] }));
  }
  return pathToFileURL(publicFile).href;
}

/** The claims that tokens must have. Null if the claim is not required. */
export interface TokenClaims {
  issuer: string[] | null;
  audience: string[] | null;
}

/** Creates a user token that is signed with this directory's key. */
export async function mintUserToken(
  directory: string,
  userId: string,
  ttlMs: number,
  { issuer, audience }: TokenClaims = { issuer: null, audience: null },
): Promise<string> {
  await useLocalUserKeys(directory);
  const key = await importJWK(JSON.parse(readFileSync(privateFileOf(directory), "utf8")), ALGORITHM);
  return new SignJWT({
    ...(issuer?.[0] !== undefined && { iss: issuer[0] }),
    ...(audience !== null && { aud: audience }),
  })
    .setProtectedHeader({ alg: ALGORITHM, kid: KEY_ID })
    .setSubject(userId)
    .setIssuedAt()
    .setExpirationTime(new Date(Date.now() + ttlMs))
    .sign(key);
}

function privateFileOf(directory: string): string {
  return resolve(directory, "user-key.json");
}
