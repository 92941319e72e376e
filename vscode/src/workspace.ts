import * as vscode from "vscode";

import { locate } from "./locate";
import type { Folder, Notice } from "./model";
import { ask, type Call } from "./recorder";
import { Refusal } from "./refusal";
import { settingsOf, type Settings } from "./settings";

const TOKEN = "dataset.apiToken";

/** The folder that is recorded, its settings, the token, and the recorder that is asked there. */
export class Workspace {
  private readonly tokenChanged = new vscode.EventEmitter<void>();
  readonly onDidChangeToken = this.tokenChanged.event;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;

  constructor(private readonly context: vscode.ExtensionContext) {
    context.subscriptions.push(
      this.changed,
      this.tokenChanged,
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.changed.fire()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("dataset")) this.changed.fire();
      }),
      context.secrets.onDidChange((event) => {
        if (event.key === TOKEN) this.tokenChanged.fire();
      }),
    );
  }

  get folders(): Folder[] {
    return (vscode.workspace.workspaceFolders ?? [])
      .filter((each) => each.uri.scheme === "file")
      .map((each) => ({ name: each.name, path: each.uri.fsPath }));
  }

  /** The only folder, or the one that was chosen. */
  get folder(): Folder | undefined {
    const folders = this.folders;
    if (folders.length === 1) return folders[0];
    const chosen = this.context.workspaceState.get<string>("folder");
    return folders.find((each) => each.path === chosen);
  }

  get settings(): Settings {
    const folder = this.folder;
    return settingsOf(folder && vscode.Uri.file(folder.path));
  }

  /** Why there is no folder to record; undefined when there is one. */
  get missing(): Notice | undefined {
    if (this.folder) return undefined;
    if (this.folders.length) {
      const text = "Several folders are open. Choose the one to record.";
      return { level: "info", text, details: [] };
    }
    const text = "No folder is open. Open the repository that you work in.";
    return { level: "info", text, details: [], action: "openFolder" };
  }

  theFolder(): Folder {
    const folder = this.folder;
    if (folder) return folder;
    const { text, action } = this.missing ?? { text: "" };
    throw new Refusal("no-folder", text, action ? { action } : {});
  }

  async choose(path: string): Promise<void> {
    await this.context.workspaceState.update("folder", path);
  }

  async setToken(token: string): Promise<void> {
    await this.context.secrets.store(TOKEN, token);
  }

  async program(): Promise<string> {
    const chosen = this.folder;
    const folders = [...(chosen ? [chosen] : []), ...this.folders].map((each) => each.path);
    return locate(this.settings.recorderPath, folders, process.env.PATH ?? "");
  }

  /** Return how the recorder is called in the folder. */
  call(): Call {
    const ignore = this.settings.ignore.map((glob) => `'${glob.replaceAll("'", `'\\''`)}'`);
    const known = process.env.DEBRIEF_RECORDER_IGNORE ?? "";
    const env = { DEBRIEF_RECORDER_IGNORE: [known, ...ignore].join(" ").trim() };
    return { cwd: this.theFolder().path, env };
  }

  /** Ask the recorder for something of this machine. */
  async ask(args: string[], input?: string): Promise<unknown> {
    const call = this.call();
    return ask(await this.program(), args, input === undefined ? call : { ...call, input });
  }

  /** Ask the recorder for something that takes the API; the token is in no command line or file. */
  async send(args: string[]): Promise<unknown> {
    const base = this.settings.apiBaseUrl;
    if (!base) {
      const text = "No API is set. Records go to the address in the setting dataset.apiBaseUrl.";
      throw new Refusal("api-not-set", text, { action: "settings" });
    }
    const token = await this.context.secrets.get(TOKEN);
    if (!token) {
      const text = "No API token is set. One is made with: debrief tokens create.";
      throw new Refusal("token-missing", text, { action: "setToken" });
    }
    const call = this.folder ? this.call() : { cwd: this.context.extensionPath, env: {} };
    const env = { ...call.env, DEBRIEF_RECORDER_URL: base, DEBRIEF_RECORDER_TOKEN: token };
    return ask(await this.program(), args, { cwd: call.cwd, env });
  }
}
