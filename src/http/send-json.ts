import type { Response } from "express";

/** Sends JSON, uncached because it holds codes, in one piece with its head, which Express's `json` does not. */
export function sendJson(response: Response, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.statusCode = status;
  response.setHeader("Cache-Control", "no-store");
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", Buffer.byteLength(text));
  response.end(response.req.method === "HEAD" ? undefined : text);
}
