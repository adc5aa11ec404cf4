import express, { type RequestHandler } from "express";

const FORM_MAX = "16kb";

/**
 * Maximum size of the body of a form with files. It is large enough for a phone's photo, so that the response can say
 * that the file is too large.
 */
const FILES_MAX = "8mb";

/** Reads the body of a form into `request.body`, as an object of texts and lists of texts. */
export const readForm = express.urlencoded({ extended: false, limit: FORM_MAX });

/** Reads a form that sends files (RFC 7578) as {@link readForm} does. A file becomes its content in Base64. */
export const readFormWithFiles: RequestHandler[] = [
  express.raw({ type: "multipart/form-data", limit: FILES_MAX }),
  async (request, _response, next) => {
    request.body = Buffer.isBuffer(request.body) ? await readParts(request.body, request.get("content-type")) : {};
    next();
  },
];

/** The parts of a body by name. None if the body cannot be read: the form's fields are then reported as missing. */
async function readParts(body: Buffer, contentType = ""): Promise<Record<string, string | string[]>> {
  const form = await new Response(new Uint8Array(body), { headers: { "Content-Type": contentType } })
    .formData()
    .catch(() => null);
  const parts: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of form ?? []) {
    const text = typeof value === "string" ? value : Buffer.from(await value.arrayBuffer()).toString("base64");
    parts[name] = parts[name] === undefined ? text : [parts[name], text].flat();
  }
  return parts;
}
