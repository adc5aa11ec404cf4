import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Request, RequestHandler, Response } from "express";

/** The parts of a CSV file, and the headers of its response. */
export interface CsvContent {
  headers: Record<string, string>;
  parts: AsyncIterable<string>;
}

/** Sends the handler's result as text with status 200. The response must not be cached. */
export function respondText(handler: (request: Request, response: Response) => Promise<unknown>): RequestHandler {
  return async (request, response) => {
    const text = String(await handler(request, response));
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Content-Type", TEXT);
    response.end(request.method === "HEAD" ? undefined : text);
  };
}

/** Sends the handler's parts as CSV if the caller prefers it. */
export function respondCsv(handler: (request: Request, response: Response) => Promise<CsvContent>): RequestHandler {
  return async (request, response, next) => {
    response.vary("Accept");
    if (request.accepts(["json", "csv"]) !== "csv") return next();
    await sendCsv(response, await handler(request, response));
  };
}

/** Sends parts of CSV as they are read. The connection breaks when a part cannot be read. */
export async function sendCsv(response: Response, { headers, parts }: CsvContent): Promise<void> {
  response.set({ ...headers, "Cache-Control": "no-store", "Content-Type": CSV });
  if (response.req.method === "HEAD") response.end();
  else await sendParts(response, parts);
}

/**
 * Sends parts as they are made. When a part cannot be made, the connection breaks, and the request log says why. When
 * the caller leaves, it gives no reason.
 */
export async function sendParts(response: Response, parts: AsyncIterable<string>): Promise<void> {
  const noted = async function* () {
    try {
      yield* parts;
    } catch (error) {
      // Set before the connection breaks, because the request is logged at that moment.
      response.locals.failure = error;
      throw error;
    }
  };
  await pipeline(Readable.from(noted()), response).catch(() => response.destroy());
}

/** The media type of text. */
export const TEXT = "text/plain; charset=utf-8";

/** The media type of CSV. */
export const CSV = "text/csv; charset=utf-8";

/** Sends the handler's result as JSON with status 200. */
export function respondJson(handler: (request: Request, response: Response) => Promise<unknown>): RequestHandler {
  return async (request, response) => sendJson(response, 200, await handler(request, response));
}

/**
 * Sends JSON that must not be cached, because it may contain codes. Unlike Express's `json`, writes head and body
 * together.
 */
export function sendJson(response: Response, status: number, body: unknown): void {
  const text = `${JSON.stringify(body)}\n`;
  response.statusCode = status;
  response.setHeader("Cache-Control", "no-store");
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", Buffer.byteLength(text));
  response.end(response.req.method === "HEAD" ? undefined : text);
}
