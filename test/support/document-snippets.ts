import { readFileSync } from "node:fs";

/** A fenced block of a document. */
export interface Snippet {
  language: string;
  /** The first line without its comment mark: a file's name, or what the snippet is. */
  name: string;
  code: string;
}

/** The fenced blocks of a Markdown file, in order. */
export function readSnippets(path: string): Snippet[] {
  const blocks = readFileSync(path, "utf8").matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return Array.from(blocks, ([, language = "", code = ""]) => {
    const [first = ""] = code.split("\n");
    return { language, name: first.replace(/^(#|\/\/) */, ""), code };
  });
}
