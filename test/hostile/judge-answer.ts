import { ERRORS } from "../../src/http/error-map.ts";
import { checkAnswer, isOutside } from "../support/check-answer.ts";
import type { RawReply } from "../support/raw-http.ts";

/** What the program's own text looks like when it leaks into an answer. */
const INSIDES = /node_modules|node:internal|\bat .+:\d+:\d+|\/src\/|ECONNREFUSED|SELECT .+ FROM/;

/**
 * Holds an answer to what every answer owes whoever asked, and however: never a 500, a status that the reference describes, the one
 * form of refusals, nothing of the program's insides.
 * @param board whether this is the dashboard behind its login, which is a library's and has refusals of its own form.
 * @throws Error saying what is wrong.
 */
export function judgeAnswer(method: string, target: string, reply: RawReply, board = false): void {
  const fail = (what: string) => {
    throw new Error(`${what}: ${reply.status} ${JSON.stringify(reply.headers)} ${reply.text.slice(0, 600)}`);
  };
  if (!Number.isInteger(reply.status)) fail("no HTTP answer");
  if (reply.status >= 500 && reply.status !== 503) fail("a fault of the service");
  if (reply.headers["x-request-id"] === undefined) fail("an answer without a request id");
  const type = reply.headers["content-type"] ?? "";
  const bodiless = method === "HEAD" || reply.text === "";
  if (reply.status >= 400 && !bodiless) {
    if (INSIDES.test(reply.text)) fail("an answer that shows the program's insides");
    if (type.startsWith("text/html")) {
      if (!/^<!doctype html>/i.test(reply.text)) fail("a refusal that is no page");
    } else if (!board) {
      const body = JSON.parse(reply.text);
      if (ERRORS[body.code as keyof typeof ERRORS]?.status !== reply.status)
        fail("a code that belongs to another status");
      if (typeof body.error !== "string" || body.requestId !== reply.headers["x-request-id"]) fail("no refusal's form");
    }
  }
  const pathname = target.split("?")[0] ?? "";
  // Where URL parsers agree on the path, the reference says what may be answered there.
  if (!pathname.startsWith("/") || !URL.canParse(`http://x${target}`)) return;
  const address = pathname.replace(/\/+$/, "") || "/";
  if (new URL(`http://x${target}`).pathname !== pathname || isOutside(address) || type.startsWith("text/html")) return;
  const body = bodiless ? null : JSON.parse(reply.text);
  checkAnswer(method, `http://x${target}`, { status: reply.status, headers: new Headers(reply.headers), body });
}
