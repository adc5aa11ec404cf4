import type { Request, RequestHandler, Response } from "express";
import type { RowFile, SendFile } from "./send-file.ts";

/** Sends the handler's result as text with status 200. The response must not be cached. */
export function respondText(handler: (request: Request, response: Response) => Promise<unknown>): RequestHandler {
  return async (request, response) => {
    const text = String(await handler(request, response));
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Content-Type", TEXT);
    response.end(request.method === "HEAD" ? undefined : text);
  };
}

/** Sends the handler's file if the caller prefers CSV. */
export function respondCsv(
  sendFile: SendFile,
  handler: (request: Request, response: Response) => Promise<RowFile>,
): RequestHandler {
  return async (request, response, next) => {
    response.vary("Accept");
    if (request.accepts(["json", "csv"]) !== "csv") return next();
    await sendFile(response, await handler(request, response));
  };
}

/** The media type of text. */
export const TEXT = "text/plain; charset=utf-8";

/** Sends the handler's result as JSON with status 200. */
export function respondJson(handler: (request: Request, response: Response) => Promise<unknown>): RequestHandler {
  return async (request, response) => sendJson(response, 200, await handler(request, response));
}

/** Sends JSON, and forbids caching, because it may contain codes. Writes head and body at once. */
export function sendJson(response: Response, status: number, body: unknown): void {
  const text = `${JSON.stringify(body)}\n`;
  response.statusCode = status;
  response.setHeader("Cache-Control", "no-store");
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", Buffer.byteLength(text));
  response.end(response.req.method === "HEAD" ? undefined : text);
}
