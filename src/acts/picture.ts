import { hash } from "node:crypto";

/** Maximum size of a picture. Bytes. A page on a phone loads it. */
export const PICTURE_MAX = 262_144;

/** The kind of a picture by its first bytes. Accepts no SVG, because an SVG file can contain scripts. */
const kindOf = (content: Buffer) => {
  if (content.subarray(0, 8).equals(Buffer.from("89504e470d0a1a0a", "hex"))) return "png";
  if (content.subarray(0, 3).equals(Buffer.from("ffd8ff", "hex"))) return "jpg";
  if (content.toString("latin1", 0, 4) === "RIFF" && content.toString("latin1", 8, 12) === "WEBP") return "webp";
  return null;
};

/** A picture. Its name is a hash of its content, and its kind: `3f….png`. Audit entries contain only the name. */
export interface Picture {
  name: string;
  content: Buffer;
  toJSON(): string;
}

/** Reads a picture, recognized by its first bytes. Null for any other file, and for a file that is too large. */
export function readPicture(base64: string): Picture | null {
  const content = Buffer.from(base64, "base64");
  const kind = kindOf(content);
  if (kind === null || content.length > PICTURE_MAX) return null;
  const name = `${hash("sha256", content).slice(0, 32)}.${kind}`;
  return { name, content, toJSON: () => name };
}
