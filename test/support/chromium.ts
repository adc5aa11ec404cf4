import { installDebianPackages, onPath } from "../../src/local/debian-packages.ts";

/** The browser without windows comes first, because it needs a third less time. */
const PROGRAMS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/** The browser and fonts. */
const PACKAGES = ["chromium-headless-shell", "fonts-liberation", "fonts-dejavu-core"];

/**
 * Finds a Chromium on PATH, or else announces and installs the distribution's package.
 * @throws Error with instructions if there is none.
 */
export function findChromium(): string {
  const find = () => PROGRAMS.map(onPath).find((path) => path !== null);
  const found = find();
  if (found !== undefined) return found;
  installDebianPackages("Chromium", PACKAGES, console.log);
  const installed = find();
  if (installed !== undefined) return installed;
  throw new Error(`The browser tests need a Chromium on PATH, under one of the names ${PROGRAMS.join(", ")}.`);
}

// `node test/support/chromium.ts` installs Chromium before parallel tests need it.
if (import.meta.main) console.log(findChromium());
