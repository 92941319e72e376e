// Photographs three pages in Chromium; see pictures.py. Arguments: node_modules, and what as JSON.
import { createRequire } from "node:module";

const [modules, work] = process.argv.slice(2);
const { browser: executablePath, home, session, lineage, to } = JSON.parse(work);
const installed = createRequire(`${modules}/x.js`);
const { chromium } = installed("playwright-core");
const sharp = installed("sharp");
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath, args });
const page = await browser.newPage({ viewport: { width: 1200, height: 760 }, colorScheme: "light" });

// A part of a page is cut to what it shows. With more pixels or colours, a picture is too heavy for a README.
async function keep(name, clip) {
  const size = { width: 1200, height: 1200, fit: "inside", withoutEnlargement: true };
  let shot = sharp(await page.screenshot({ clip }));
  if (clip) {
    const white = { top: 16, bottom: 16, left: 16, right: 16, background: "white" };
    shot = sharp(await shot.trim({ threshold: 22 }).extend(white).toBuffer());
  }
  const picture = shot.resize(size);
  await picture.png({ palette: true, colours: 128, effort: 10 }).toFile(`${to}/${name}.png`);
}

// The pages may still be reading the lake.
while ((await page.goto(session)).status() === 404) await page.waitForTimeout(500);
await page.waitForLoadState("networkidle");
await keep("session");

await page.setViewportSize({ width: 1200, height: 1150 });
await page.goto(home);
await page.getByRole("heading", { name: /^To look at(?!, so far)/ }).waitFor();
await keep("home");

await page.setViewportSize({ width: 2100, height: 2900 });
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
const clip = { x: 372, y: 112, width: 1685, height: 2785 };
await keep("lineage", clip);
await browser.close();
