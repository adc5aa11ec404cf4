import { readFileSync } from "node:fs";

export interface Snippet {
  language: string;
  /** The first line without its comment mark: a file name or a title. */
  name: string;
  code: string;
}

/** Reads the fenced code blocks of a Markdown file, in order. */
export function readSnippets(path: string): Snippet[] {
  const blocks = readFileSync(path, "utf8").matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return Array.from(blocks, ([, language = "", code = ""]) => {
    const [first = ""] = code.split("\n");
    return { language, name: first.replace(/^(<\?php )?(#|\/\/) */, ""), code };
  });
}
