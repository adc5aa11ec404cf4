import { cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The service's image according to the Dockerfile. */
export interface Image {
  /** Files and folders copied from the checkout. */
  copied: string[];
  environment: Record<string, string>;
  user: string | null;
  /** Empty directories that `install -d` makes for this user alone. */
  directories: string[];
  command: string[];
  healthcheck: string[];
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
    directories: all("RUN")
      .filter((line) => line.startsWith(install))
      .flatMap((line) => line.slice(install.length).split(/\s+/)),
    command: JSON.parse(all("CMD").at(-1) ?? "[]"),
    healthcheck: JSON.parse(/CMD (\[.*\])/.exec(all("HEALTHCHECK").at(-1) ?? "")?.[1] ?? "[]"),
  };
}

/**
 * Recreates the content of the image in a folder: the copied files and the production packages only, so that the program cannot import
 * other packages.
 */
export function layOutImage(directory: string): void {
  for (const copied of readDockerfile().copied)
    cpSync(join(ROOT, copied), join(directory, copied), { recursive: true });
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean }>;
  };
  for (const [path, { dev, optional, devOptional }] of Object.entries(packages)) {
    if (!/^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) || dev || optional || devOptional) continue;
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    symlinkSync(join(ROOT, path), join(directory, path));
  }
}
