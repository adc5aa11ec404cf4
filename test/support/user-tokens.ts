import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";
import { startPartnerServer } from "./partner-server.ts";

export interface IssuerKey {
  kid: string;
  alg: string;
  privateKey: GenerateKeyPairResult["privateKey"];
  publicJwk: JWK;
}

/** Tells no operator of tokens. */
export const TELLS_NOTHING = { log: { warn: () => undefined }, reportToken: () => undefined };

let keys = 0;

export async function makeIssuerKey(alg = "EdDSA", kid?: string): Promise<IssuerKey> {
  keys += 1;
  const name = kid ?? `key-${keys}`;
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid: name, alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid: name, alg, use: "sig" } };
}

/** Returns a time in seconds since 1970, as used in tokens. */
export function secondsFromNow(seconds: number): number {
  return Math.floor(Date.now() / 1_000) + seconds;
}

/** Signs claims without adding or checking any. */
export function signClaims(key: IssuerKey, claims: JWTPayload, header: Record<string, unknown> = {}): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: key.alg, kid: key.kid, ...header }).sign(key.privateKey);
}

/** Creates a user token that is valid for an hour, unless `claims` says otherwise. */
export function signUser(key: IssuerKey, userId: string, claims: JWTPayload = {}): Promise<string> {
  return signClaims(key, { sub: userId, iat: secondsFromNow(0), exp: secondsFromNow(3_600), ...claims });
}

/** A file of public keys. */
export interface KeysFile {
  url: string;
  remove(): void;
}

/** Writes public keys to a file, for `AUTH_JWKS_URL`. */
export function writeKeysFile(...issuers: readonly IssuerKey[]): KeysFile {
  const directory = mkdtempSync(join(tmpdir(), "voucher-keys-"));
  const file = join(directory, "jwks.json");
  writeFileSync(file, JSON.stringify({ keys: issuers.map(({ publicJwk }) => publicJwk) }));
  return { url: pathToFileURL(file).href, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

export interface KeysServer {
  url: string;
  /** Number of requests that the server received. */
  readonly fetches: number;
  /** Replaces the published keys. */
  publish(...issuers: readonly IssuerKey[]): void;
  /** Replaces the response. After null, the server never responds. */
  answer(reply: { status: number; body: string } | null): void;
  close(): Promise<void>;
}

export async function openKeysServer(...issuers: readonly IssuerKey[]): Promise<KeysServer> {
  let reply: { status: number; body: string } | null = null;
  const server = await startPartnerServer({
    answer: (response) => {
      if (reply !== null) response.writeHead(reply.status, { "content-type": "application/json" }).end(reply.body);
    },
  });
  const keysServer: KeysServer = {
    url: server.url,
    get fetches() {
      return server.received.length;
    },
    publish(...published) {
      reply = { status: 200, body: JSON.stringify({ keys: published.map(({ publicJwk }) => publicJwk) }) };
    },
    answer(newReply) {
      reply = newReply;
    },
    close: server.close,
  };
  keysServer.publish(...issuers);
  return keysServer;
}
