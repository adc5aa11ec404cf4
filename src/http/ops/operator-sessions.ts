import { createHash, hkdfSync, timingSafeEqual } from "node:crypto";
import { parseCookie, type SetCookie, stringifySetCookie } from "cookie";
import type { Request, Response } from "express";
import { jwtVerify, SignJWT } from "jose";

/** How long a session lasts: a working day. Seconds. */
export const SESSION_SECONDS = 28_800;
const ALGORITHM = "HS256";

/**
 * Sessions of operators. All there is of a session is a signed cookie, so every API process knows it, and a new OPS_TOKEN ends
 * them all; signing out takes the cookie from the browser.
 */
export class OperatorSessions {
  readonly #tokenDigest: Buffer;
  readonly #key: Uint8Array;
  readonly #cookie: Omit<SetCookie, "value">;

  /** @param secure whether the outside reaches the service by https. */
  constructor(token: string, secure: boolean) {
    this.#tokenDigest = digest(token);
    this.#key = new Uint8Array(hkdfSync("sha256", token, "", "operator session cookie", 32));
    this.#cookie = {
      // The prefix makes browsers refuse the cookie from a neighbouring host and from plain http.
      name: secure ? "__Host-operator" : "operator",
      path: "/",
      httpOnly: true,
      sameSite: "strict",
      secure,
    };
  }

  /** Whether this is OPS_TOKEN. Takes the same time for every wrong one. */
  isToken(candidate: string): boolean {
    return timingSafeEqual(digest(candidate), this.#tokenDigest);
  }

  /** Starts a session that ends by itself. */
  async begin(response: Response): Promise<void> {
    const value = await new SignJWT()
      .setProtectedHeader({ alg: ALGORITHM })
      .setIssuedAt()
      .setExpirationTime(`${SESSION_SECONDS} seconds`)
      .sign(this.#key);
    response.append("Set-Cookie", stringifySetCookie({ ...this.#cookie, value, maxAge: SESSION_SECONDS }));
  }

  /** Takes the session from the browser. */
  end(response: Response): void {
    response.append("Set-Cookie", stringifySetCookie({ ...this.#cookie, value: "", maxAge: 0 }));
  }

  /** Whether the request comes from a session that has not ended. */
  async isOpen(request: Request): Promise<boolean> {
    const value = parseCookie(request.get("cookie") ?? "")[this.#cookie.name];
    if (value === undefined) return false;
    return jwtVerify(value, this.#key, { algorithms: [ALGORITHM], requiredClaims: ["exp"] }).then(
      () => true,
      () => false,
    );
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
