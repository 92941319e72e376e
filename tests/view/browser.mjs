// Opens the pages in Chromium; see browser.py. Arguments: node_modules, and what to open as JSON.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [modules, work] = process.argv.slice(2);
const { browser: executablePath, pages, story, reading } = JSON.parse(work);
const require = createRequire(`${modules}/x.js`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath, args });
const problems = [];

async function open(address, options) {
  const own = new Set([address, ...pages].map((one) => new URL(one).origin));
  // axe is a script of ours that the pages' policy would refuse.
  const context = await browser.newContext({ bypassCSP: true, ...options });
  const page = await context.newPage();
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && !own.has(url.origin)) problems.push(`${page.url()} asks ${url}`);
  });
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error.message}`));
  return page;
}

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 390]) {
    const page = await open(pages[0], { colorScheme, viewport: { width, height: 900 } });
    for (const address of pages) {
      const answer = await page.goto(address);
      if (answer.status() >= 500) problems.push(`${address} answers ${answer.status()}`);
      const place = `${new URL(address).pathname} ${colorScheme} ${width}`;
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wider > 0) problems.push(`${place}: ${wider} pixels wider than the window`);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => axe.run());
      for (const { id, impact, nodes } of violations) {
        const line = `${place}: ${impact} ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")}`;
        if (["serious", "critical"].includes(impact)) problems.push(line);
        else console.log(`  minor: ${line}`);
      }
    }
    console.log(`${pages.length} pages, ${colorScheme}, ${width} wide`);
    await page.context().close();
  }
}

function check(holds, what) {
  if (!holds) problems.push(`the story: ${what}`);
}

// With the policy in force: no script of the hostile session may run.
const page = await open(story, { bypassCSP: false, viewport: { width: 1280, height: 900 } });
page.on("dialog", (dialog) => { problems.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
await page.goto(story);
await page.keyboard.press("/");
await page.keyboard.type("cart");
await page.keyboard.press("Enter");
await page.waitForURL("**/sessions?q=cart*");
await page.selectOption("select[name=task]", "shop");
await page.waitForURL("**task=shop*");
check(!page.url().includes("tool="), "an address has only what was chosen");
await page.locator("text=Fix the cart").first().waitFor();
check((await page.locator("tbody tr").count()) === 2, "two sessions of the shop have the word");
await page.keyboard.press("j");
await page.keyboard.press("j");
await page.keyboard.press("k");
await page.keyboard.press("j");
await page.keyboard.press("Enter");
await page.waitForURL("**/sessions/carts*");
await page.keyboard.press("b");
await page.locator(".labels .said >> text=incomplete").waitFor();
await page.keyboard.press("m");
await page.keyboard.type("Gone by <b>noon</b>");
await page.keyboard.press("Escape");
await page.keyboard.press("b");
await page.locator(".labels .said q >> text=Gone by <b>noon</b>").waitFor();
await page.goto(`${story}/labels/next`);
const first = await page.locator("h1").innerText();
await page.keyboard.press("g");
await page.waitForFunction((was) => document.querySelector("h1").innerText !== was, first);
const csv = await (await page.request.get(`${story}/labels.csv`)).text();
check(/carts,success,(bad|no)/.test(csv), "the first label is kept");
check(csv.trim().split("\n").length === 3, "the second label is kept");
check(csv.includes("ada"), "who labelled is kept");
for (const address of ["/", "/sessions", "/sessions?sort=title", "/weeks"]) await page.goto(story + address);
const hostile = page.locator('a.title[href*="%3Cb%20"]').first();
await page.goto(`${story}/sessions`);
await hostile.click();
await page.waitForLoadState("networkidle");
check((await page.locator("img[src=x]").count()) === 0, "a session's markup is no markup");
await page.goto(`${reading}/sessions/every-kind`);
await page.click("text=review by claude-code >> xpath=ancestor::li >> p.places a");
check((await page.locator("[id^=mark-].at").count()) === 1, "a proof leads to its place");
check(!(await page.locator("details.others").first().evaluate((fold) => fold.open)), "others' numbers are folded");
await page.click("text=a fork of >> nth=0");
await page.waitForURL("**/sessions/later");
await page.click("text=a fork of this session");
await page.waitForURL("**/sessions/every-kind");
await page.goto(reading);
await page.keyboard.press("?");
check(await page.locator("dialog#keys").evaluate((one) => one.open), "? shows the keys");
await page.keyboard.press("Escape");
check(!(await page.locator("dialog#keys").evaluate((one) => one.open)), "Escape closes the keys");
await page.keyboard.press("j");
await page.keyboard.press("c");
await page.locator("main button[data-copy] >> text=/Copied|Selected/").first().waitFor();
await page.click("text=Friction >> nth=0");
await page.click("main a.title >> nth=0");
await page.locator("h2 >> text=The line that stops it").waitFor();
console.log("the story of finding, reading and labelling");

// browser.py has the session go on when it reads the second line.
await page.goto(`${story}/sessions/tax`);
await page.locator("details.call").first().evaluate((fold) => { fold.open = !fold.open; });
const folded = await page.locator("details.call").first().evaluate((fold) => fold.open);
console.log("reads a session that runs");
await page.locator("text=Round the tax too").waitFor();
check((await page.locator("section.turn").count()) === 2, "what is new is there once, below");
check((await page.locator("details.call").first().evaluate((fold) => fold.open)) === folded, "folds stay");
check((await page.locator(".session-head").textContent()).includes("2 turns"), "its head follows");

await browser.close();
for (const problem of [...new Set(problems)]) console.error(`WRONG ${problem}`);
process.exit(problems.length ? 1 : 0);
