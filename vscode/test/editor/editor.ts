/** A real VS Code, code-server, driven in a headless browser. */

import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium, type Browser, type FrameLocator, type Locator, type Page } from "playwright-core";

import { ended, freePort, until, type Stage } from "./stage";

const CHROMIUM = process.env.DEBRIEF_CHROMIUM ?? "/usr/bin/chromium";
const QUIET = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"],
  ...["--disable-background-networking", "--disable-component-update"],
];

const BASE = {
  "workbench.startupEditor": "none",
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "git.openRepositoryInParentFolders": "never",
  "window.autoDetectColorScheme": false,
  "extensions.ignoreRecommendations": true,
  "chat.disableAIFeatures": true,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
};

const AXE = readFileSync(createRequire(__filename).resolve("axe-core/axe.min.js"), "utf8");

interface Findings {
  violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
}

type Settings = Record<string, unknown>;

export class Editor {
  private browser!: Browser;
  page!: Page;
  private server!: ReturnType<Stage["start"]>;
  private url = "";
  private arguments: string[] = [];

  constructor(private readonly stage: Stage) {}

  /** Write a person's settings; the editor follows them at once. */
  settle(settings: Settings): void {
    this.stage.write(join(this.stage.root, "editor"), {
      "User/settings.json": JSON.stringify({ ...BASE, ...settings }),
    });
  }

  /** Install the extension and start the editor, with a person's settings and the machine's. */
  async open(settings: Settings, machine: Settings): Promise<void> {
    const data = join(this.stage.root, "editor");
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    this.settle(settings);
    this.stage.write(data, {
      "Machine/settings.json": JSON.stringify(machine),
      "config.yaml": "",
    });
    const shared = [
      ...["--config", join(data, "config.yaml"), "--user-data-dir", data],
      ...["--extensions-dir", join(data, "extensions")],
    ];
    const program = join(this.stage.bin, "code-server");
    this.stage.run(
      this.stage.root,
      program,
      ...[...shared, "--install-extension", this.stage.places.vsix],
    );
    this.arguments = [
      ...shared,
      ...["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-workspace-trust"],
      ...["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"],
    ];
    await this.start();
    this.browser = await chromium.launch({ executablePath: CHROMIUM, args: QUIET });
    const viewport = { width: 1280, height: 860 };
    this.page = await this.browser.newPage({ viewport, deviceScaleFactor: 1 });
  }

  private async start(): Promise<void> {
    this.server = this.stage.start(join(this.stage.bin, "code-server"), this.arguments);
    await until("the editor", async () => (await fetch(`${this.url}/healthz`)).ok);
  }

  /** End the editor's server without a warning, and start it again. */
  async crash(): Promise<void> {
    await ended(this.server, "SIGKILL");
    // Its children see that it is gone, and go as well.
    const answers = (): Promise<boolean> => fetch(`${this.url}/healthz`).then((answer) => answer.ok);
    await until("its end", async () => !(await answers().catch(() => false)));
    await this.start();
  }

  /** Show a folder. */
  async load(query: string): Promise<void> {
    await this.page.goto(`${this.url}/?${query}`);
    await this.page.locator(".monaco-workbench").waitFor({ timeout: 60_000 });
    await this.page.locator(".activitybar").waitFor();
  }

  /** Show a folder, and the extension's sidebar. */
  async show(query: string): Promise<void> {
    await this.load(query);
    await this.sidebar();
  }

  /** Open a file of a folder, add a line at its start, and save it, as a person does. */
  async save(folder: string, name: string, line: string): Promise<void> {
    await this.page.getByRole("treeitem", { name }).dblclick();
    await this.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
    await this.page.locator(".view-lines .view-line").first().click();
    await this.page.keyboard.press("Control+Home");
    await this.page.keyboard.type(`${line}\n`);
    await this.page.keyboard.press("Control+S");
    await until("the file", () => readFileSync(join(folder, name), "utf8").includes(line));
  }

  async sidebar(): Promise<void> {
    const tab = this.page.getByRole("tab", { name: /Session Recorder/ });
    await tab.waitFor({ timeout: 60_000 });
    if ((await tab.getAttribute("aria-selected")) !== "true") await tab.click();
    await this.view.locator("body").waitFor({ timeout: 60_000 });
  }

  /** The extension's page. */
  get view(): FrameLocator {
    return this.page.frameLocator("iframe.webview").frameLocator("iframe#active-frame");
  }

  /** Return the name of what has the focus in the extension's page; empty where nothing has. */
  async focused(): Promise<string> {
    const focus = this.view.locator("*:focus");
    if (!(await focus.count())) return "";
    return focus.evaluate((element) => {
      const { labels } = element as HTMLInputElement;
      return (element.ariaLabel ?? labels?.[0]?.textContent ?? element.textContent ?? "").trim();
    });
  }

  /** Turn to the extension's page by the palette, as a person without a mouse does. */
  async turnTo(): Promise<void> {
    await this.command("Session Recorder: Focus on Session Recorder View");
    await until("the focus", () => this.hasFocus());
  }

  private async hasFocus(): Promise<boolean> {
    return this.view.locator("body").evaluate(() => document.hasFocus());
  }

  /** Go by Tab alone to what has a name in the extension's page, to its end and back. */
  async tabTo(name: string): Promise<void> {
    const seen: string[] = [];
    for (const key of ["Tab", "Shift+Tab", "Tab"]) {
      if (!(await this.hasFocus())) await this.turnTo();
      for (let step = 0; step < 60 && (await this.hasFocus()); step++) {
        if ((await this.focused()) === name) return;
        await this.page.keyboard.press(key);
        seen.push(await this.focused());
      }
    }
    throw new Error(`${name}: no Tab leads there, but to ${seen.join(", ")}`);
  }

  async press(name: string): Promise<void> {
    await this.tabTo(name);
    await this.page.keyboard.press("Enter");
  }

  /** See that everybody can use the extension's page as it is now. */
  async usable(): Promise<void> {
    const body = await this.view.locator("body").elementHandle();
    const frame = await body?.ownerFrame();
    await frame?.evaluate(AXE);
    // The page is transparent: what is behind it belongs to the editor.
    await frame?.evaluate(() => {
      document.body.style.background = "var(--vscode-sideBar-background)";
    });
    const found = (await frame?.evaluate("axe.run()")) as Findings;
    const grave = found.violations.filter(({ impact }) => /serious|critical/.test(impact));
    const lines = grave.map(({ id, impact, nodes }) =>
      [impact, id, ...nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + node.failureSummary)].join(" "),
    );
    assert.deepEqual(lines, []);
  }

  async command(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget input[type=text]");
    await input.fill(`>${title}`);
    await this.page.locator(".quick-input-list .monaco-list-row").first().waitFor();
    await this.page.keyboard.press("Enter");
  }

  /** Return the milliseconds that activations took, as the editor measured them. */
  async activation(): Promise<{ own: number; slowest: number }> {
    await this.command("Developer: Show Running Extensions");
    const rows = this.page.locator(".runtime-extensions-editor .monaco-list-row");
    const row = rows.filter({ hasText: "Session Recorder" });
    const time = async (each: Locator): Promise<number> =>
      Number(/(\d+)ms/.exec(await each.getByText(/Activation: \d+ms/).innerText())?.[1]);
    const slowest = await time(rows.first());
    await rows.first().hover();
    // The slowest come first, and the list holds no more than what is seen.
    await until("its row", async () => {
      await this.page.mouse.wheel(0, 200);
      return row.isVisible();
    });
    const own = await time(row);
    await this.page.keyboard.press("Escape");
    return { own, slowest };
  }

  /** Answer the input box that is open. */
  async answer(text: string): Promise<void> {
    const input = this.page.locator(".quick-input-widget:visible input").first();
    await input.waitFor();
    await input.fill(text);
    await this.page.waitForTimeout(150);
    await this.page.keyboard.press("Enter");
    await this.page.waitForTimeout(300);
  }

  /** Press a button of the dialog that is open. */
  async confirm(button: string): Promise<void> {
    await this.page.locator(".monaco-dialog-box").getByRole("button", { name: button }).click();
  }

  async says(text: string | RegExp, seconds = 90): Promise<void> {
    await this.view.getByText(text).first().waitFor({ timeout: seconds * 1000 });
  }

  async picture(file: string): Promise<void> {
    // No tip and no hover is in the way.
    await this.page.mouse.move(1100, 200);
    await this.page.waitForTimeout(1000);
    await this.page.screenshot({ path: file });
  }

  async end(): Promise<void> {
    await this.browser?.close();
    if (this.server) await ended(this.server);
  }
}
