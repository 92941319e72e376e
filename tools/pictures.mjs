// Photographs three pages in Chromium; see pictures.py. Arguments: node_modules, and what as JSON.
import { createRequire } from "node:module";

const [modules, work] = process.argv.slice(2);
const { browser: executablePath, home, session, lineage, to } = JSON.parse(work);
const { chromium } = createRequire(`${modules}/x.js`)("playwright-core");
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath, args });
const page = await browser.newPage({ viewport: { width: 1200, height: 760 }, colorScheme: "light" });

// The pages may still be reading the lake.
while ((await page.goto(session)).status() === 404) await page.waitForTimeout(500);
await page.waitForLoadState("networkidle");
await page.screenshot({ path: `${to}/session.png` });

await page.setViewportSize({ width: 1200, height: 1150 });
await page.goto(home);
await page.getByText("have a verdict").waitFor();
await page.screenshot({ path: `${to}/home.png` });

await page.setViewportSize({ width: 1640, height: 1240 });
await page.goto(lineage);
await page.locator("svg").getByText("sessions", { exact: true }).waitFor({ timeout: 120_000 });
await page.getByText("Hide navigation").click();
await page.locator('button:right-of(input[placeholder^="Jump to"])').first().click();
await page.keyboard.press("Alt+KeyE"); // opens all groups, which the next visit remembers
await page.waitForTimeout(1_000);
await page.reload();
await page.locator("svg").getByText("raw_sessions").waitFor({ timeout: 120_000 });
await page.waitForTimeout(4_000);
// The graph alone, without what is around it.
const clip = { x: 372, y: 112, width: 1225, height: 1125 };
await page.screenshot({ path: `${to}/lineage.png`, clip });
await browser.close();
