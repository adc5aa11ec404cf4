import { installDebianPackages, onPath } from "../../src/local/debian-packages.ts";

const PROGRAMS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/** The browser and letters for it to draw. */
const PACKAGES = ["chromium", "fonts-liberation", "fonts-dejavu-core"];

/**
 * Where a Chromium is: on PATH, else the distribution's package, installed after saying so.
 * @throws Error with what to do when there is no way to get one.
 */
export function findChromium(say: (line: string) => void = console.log): string {
  const found = onPathAny();
  if (found !== null) return found;
  installDebianPackages("Chromium", PACKAGES, say);
  const installed = onPathAny();
  if (installed !== null) return installed;
  throw new Error(`The browser tests need a Chromium on PATH, under one of the names ${PROGRAMS.join(", ")}.`);
}

function onPathAny(): string | null {
  for (const program of PROGRAMS) {
    const path = onPath(program);
    if (path !== null) return path;
  }
  return null;
}

// `node test/support/chromium.ts` installs it, so that no two tests do.
if (import.meta.main) console.log(findChromium());
