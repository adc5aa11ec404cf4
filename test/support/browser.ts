import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { AxeResults } from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";
import { beforeAll, expect, onTestFinished } from "vitest";
import { findChromium } from "./chromium.ts";
import { PATIENT_MS } from "./until.ts";

/** SCREENSHOTS is the folder for screenshots, if any. UPDATE_IMAGES=1 replaces the pictures in docs/images. */
const { SCREENSHOTS, UPDATE_IMAGES } = process.env;

/**
 * The variants in which every page is tested: a name, and the browser's options. Two variants suffice for each width
 * and each colour scheme, because no rule of our style sheets for a width sets a colour, as test/pages/pages.test.ts
 * checks.
 */
export const LOOKS = [
  ["desktop, light", { viewport: { width: 1280, height: 800 }, colorScheme: "light" }],
  ["phone, dark", { viewport: { width: 390, height: 844 }, colorScheme: "dark", hasTouch: true, isMobile: true }],
] as const satisfies [string, BrowserContextOptions][];

/** The script of axe, minified, because each page evaluates it: half the size of `axe.source`. */
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A page in its own profile, and its errors so far. Browsers report violations of a page's policy on the console. */
export interface Visit {
  page: Page;
  /** Script errors, and console messages at levels error and warning. */
  complaints: string[];
  /** The status of the page's response, if there was one. */
  status: number | undefined;
}

/** The browser of this process, which all its test files share. It ends with the process. */
let shared: Promise<Browser> | undefined;

/** Starts a browser for which every host name under `.test` is this machine. */
const startBrowser = () =>
  chromium.launch({
    executablePath: findChromium(),
    args: ["--host-resolver-rules=MAP *.test 127.0.0.1"],
    timeout: PATIENT_MS,
  });

/** Returns a function that opens an address until the test ends, by default in Berlin's time zone. */
export function useBrowser(own: () => BrowserContextOptions = () => ({})) {
  let browser: Browser;
  beforeAll(async () => {
    shared ??= startBrowser();
    browser = await shared;
  });
  return async (address: string, options: BrowserContextOptions = {}): Promise<Visit> => {
    const context = await browser.newContext({ locale: "en-GB", timezoneId: "Europe/Berlin", ...own(), ...options });
    onTestFinished(() => context.close());
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    return { page, complaints, status: (await page.goto(address))?.status() };
  };
}

/** Follows a link and waits for the new page, because after a click the old page may still be visible. */
export async function follow(link: Locator): Promise<void> {
  const loaded = link.page().waitForEvent("load");
  await link.click();
  await loaded;
}

/** Names the only rule of WCAG 2.2, because axe omits it otherwise. */
const AXE_RUN = "axe.run(document, { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } })";

/** The violations that axe finds on a page, each with its elements: WCAG up to 2.2 AA, and best practices. */
export async function findAxeViolations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const results = (await page.evaluate(AXE_RUN)) as AxeResults;
  return results.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** Measures the number of pixels by which the page is wider than its window. */
async function measureOverflow(page: Page): Promise<number> {
  const width = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
  return (await page.evaluate(width)) as number;
}

/** Expects that a page passes axe, is not wider than its window, and has only errors with the text `expected`. */
export async function expectSound({ page, complaints }: Visit, name: string, expected = "\0"): Promise<void> {
  await photograph(page, name);
  expect(await findAxeViolations(page), name).toEqual([]);
  expect(await measureOverflow(page), name).toBe(0);
  expect(
    complaints.filter((complaint) => !complaint.includes(expected)),
    name,
  ).toEqual([]);
}

/** Replaces a picture in docs/images by the visible part of the page. Does nothing without UPDATE_IMAGES=1. */
export async function updateImage(page: Page, name: "verification-page" | "queue-dashboard"): Promise<void> {
  if (UPDATE_IMAGES === "1") await page.screenshot({ path: `docs/images/${name}.png`, animations: "disabled" });
}

/** Takes a picture of the whole page if SCREENSHOTS is set. */
export async function photograph(page: Page, name: string): Promise<void> {
  if (!SCREENSHOTS) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name.replaceAll(/[^a-z0-9]+/gi, "-")}.png`), fullPage: true });
}
