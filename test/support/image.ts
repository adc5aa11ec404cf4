import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The service's image according to the Dockerfile. */
export interface Image {
  /** Files and folders copied from the checkout. */
  copied: string[];
  environment: Record<string, string>;
  user: string | null;
  /** Empty directories that the Dockerfile makes with `install -d` for the image's user alone. */
  directories: string[];
}

/** Reads the last stage of the Dockerfile, which is built by default. */
export function readDockerfile(): Image {
  const text = readFileSync(join(ROOT, "Dockerfile"), "utf8").replace(/\\\n/g, " ");
  const lines = (text.split(/^FROM /m).at(-1) ?? "").split("\n");
  const all = (instruction: string) =>
    lines.filter((line) => line.startsWith(`${instruction} `)).map((line) => line.slice(instruction.length + 1).trim());
  const user = all("USER").at(-1) ?? null;
  const install = `install -d -o ${user} -g ${user} -m 0700 `;
  return {
    copied: all("COPY")
      .filter((line) => !line.startsWith("--from="))
      .flatMap((line) => line.split(/\s+/).slice(0, -1)),
    environment: Object.fromEntries(all("ENV").map((line) => line.split("=", 2))),
    user,
    directories: lines
      .filter((line) => line.includes(install))
      .flatMap((line) => (line.split(install)[1] ?? "").trim().split(/\s+/)),
  };
}
