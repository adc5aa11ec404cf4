import { ERRORS } from "../../src/contract/errors.ts";
import { checkAnswer, isOutside } from "../support/check-answer.ts";
import type { RawReply } from "../support/raw-http.ts";

/** Matches internals that must not appear in answers. */
const INTERNALS = /node_modules|node:internal|\bat .+:\d+:\d+|\/src\/|ECONNREFUSED|SELECT .+ FROM/;

/**
 * Checks the rules for every answer: no 500, a documented status, the common error body, no internals.
 * @param board whether this is the operators' dashboard, a library with its own error bodies.
 * @throws Error with the broken rule.
 */
export function judgeAnswer(method: string, target: string, reply: RawReply, board = false): void {
  const fail = (what: string) => {
    throw new Error(`${what}: ${reply.status} ${JSON.stringify(reply.headers)} ${reply.text.slice(0, 600)}`);
  };
  if (!Number.isInteger(reply.status)) fail("no HTTP answer");
  if (reply.status >= 500 && reply.status !== 503) fail("an internal error");
  if (reply.headers["x-request-id"] === undefined) fail("the request id is missing");
  const type = reply.headers["content-type"] ?? "";
  const bodiless = method === "HEAD" || reply.text === "";
  if (reply.status >= 400 && !bodiless) {
    if (INTERNALS.test(reply.text)) fail("the answer shows internals");
    if (type.startsWith("text/html")) {
      if (!/^<!doctype html>/i.test(reply.text)) fail("the refusal is not a page");
    } else if (!board) {
      const body = JSON.parse(reply.text);
      if (ERRORS[body.code as keyof typeof ERRORS]?.status !== reply.status) fail("the code belongs to another status");
      if (typeof body.error !== "string" || body.requestId !== reply.headers["x-request-id"])
        fail("the body is not an error body");
    }
  }
  const pathname = target.split("?")[0] ?? "";
  // The reference applies only where URL parsers agree on the path.
  if (!pathname.startsWith("/") || !URL.canParse(`http://x${target}`)) return;
  const address = pathname.replace(/\/+$/, "") || "/";
  if (new URL(`http://x${target}`).pathname !== pathname || isOutside(address) || type.startsWith("text/html")) return;
  const body = bodiless ? null : JSON.parse(reply.text);
  checkAnswer(method, `http://x${target}`, { status: reply.status, headers: new Headers(reply.headers), body });
}
