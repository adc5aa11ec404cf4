import { startBrowser, findAxeViolations, measureOverflow, LOOKS } from "./support/browser.ts";
const token = process.argv[2];
const browser = await startBrowser();
for (const [name, options] of [LOOKS[0], LOOKS[3]]) {
  const context = await browser.newContext({ ...options, httpCredentials: { username: "zoe", password: token } } as never);
  const page = await context.newPage();
  page.on("console", (m) => console.log(m.type(), m.text())); page.on("pageerror", (e) => console.log("ERR", e.message));
  await page.goto("http://localhost:34567/ops"); await page.waitForTimeout(1500);
  console.log(name, await findAxeViolations(page), await measureOverflow(page), (await page.content()).length);
  await page.screenshot({ path: `/tmp/o1-${name.replace(/\W+/g, "-")}.png`, fullPage: true });
  await context.close();
}
await browser.close();
