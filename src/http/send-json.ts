import type { Response } from "express";

/**
 * Answers with JSON. Answers carry codes and hold state, so nobody may store them.
 *
 * Written at once: Express's `json` looks after formats and caches that these answers do not have, and hands head and body to
 * the system in two pieces.
 */
export function sendJson(response: Response, status: number, answer: unknown): void {
  const body = JSON.stringify(answer);
  response.statusCode = status;
  response.setHeader("Cache-Control", "no-store");
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", Buffer.byteLength(body));
  response.end(response.req.method === "HEAD" ? undefined : body);
}
