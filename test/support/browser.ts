import { mkdirSync } from "node:fs";
import { join } from "node:path";
import axe, { type AxeResults } from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { findChromium } from "./chromium.ts";

/** The folder that screenshots are put into, to be looked at; without it none are taken. */
const { SCREENSHOTS } = process.env;

/** The looks in which every page has to be good: a name, and what a browser is told. */
export const LOOKS = [
  ["desktop, light", { viewport: { width: 1280, height: 800 }, colorScheme: "light" }],
  ["desktop, dark", { viewport: { width: 1280, height: 800 }, colorScheme: "dark" }],
  ["phone, light", { viewport: { width: 390, height: 844 }, colorScheme: "light", hasTouch: true, isMobile: true }],
  ["phone, dark", { viewport: { width: 390, height: 844 }, colorScheme: "dark", hasTouch: true, isMobile: true }],
] as const satisfies [string, BrowserContextOptions][];

/** Starts a browser; one is enough for a test file. It finds every host under `.test` on this machine. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), args: ["--host-resolver-rules=MAP *.test 127.0.0.1"] });
}

/** A page in a profile of its own, and what went wrong in it so far. Browsers tell breaches of a page's policy on the console. */
export interface Visit {
  page: Page;
  /** Errors of scripts, and messages of the console at levels error and warning. */
  complaints: string[];
  close(): Promise<void>;
}

/** Opens an empty page: in a profile of its own, in Berlin's time zone unless told otherwise. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext({ locale: "en-GB", timezoneId: "Europe/Berlin", ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  return { page, complaints, close: () => context.close() };
}

/** What axe finds wrong with a page, each with the elements it is about. Checks everything up to WCAG 2.2 AA and good practice. */
export async function findBarriers(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const results = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as AxeResults;
  return results.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** How far a page is wider than its window, in pixels. */
export async function measureOverflow(page: Page): Promise<number> {
  const width = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
  return (await page.evaluate(width)) as number;
}

/** Takes a picture of the whole page, for someone to look at, if somebody wants to. */
export async function photograph(page: Page, name: string): Promise<void> {
  if (!SCREENSHOTS) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name.replaceAll(/[^a-z0-9]+/gi, "-")}.png`), fullPage: true });
}
