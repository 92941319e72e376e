/** What the extension does: it asks the recorder, and tells the page. */

import * as vscode from "vscode";

import type { Commands, Exported, History, Sent, Status, Stopped, Tasks } from "./answers";
import { endOf, offersOf, placeOf, refusalFor, sessionOf, uploadsOf } from "./answers";
import { isInside } from "./folders";
import type { CommandInputs, Draft, Session, StopOptions, Task, Upload, ViewState } from "./model";
import { Notices } from "./notices";
import { follow, type Running } from "./recorder";
import { Refusal } from "./refusal";
import { CommandTerminal } from "./terminal";
import { Workspace } from "./workspace";

const NO_DRAFT: Draft = { template: "", system: "", prompt: "" };
/** Milliseconds after a file changed in which others may follow. */
const SETTLE = 700;
/** Milliseconds between two attempts to send what waits. */
const RESEND = 60_000;
/** Uploads that the history shows. */
const SHOWN = 20;

type Live = Pick<
  ViewState,
  "known" | "place" | "session" | "offers" | "rules" | "waiting" | "uploads" | "busy" | "tasks"
>;
const NOTHING: Omit<Live, "tasks" | "uploads" | "waiting" | "busy"> = {
  ...{ known: false, place: null, session: null, offers: [], rules: null },
};

export class Controller implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  readonly notices = new Notices();
  /** Whether anybody sees what is read; a page that is shown again asks for all of it. */
  isShown = (): boolean => false;
  private readonly disposables: vscode.Disposable[] = [];
  private watcher: { folder: string; end: vscode.Disposable } | undefined;
  private settling: NodeJS.Timeout | undefined;
  private resending: NodeJS.Timeout | undefined;
  private reading: Promise<void> | undefined;
  private readAgain = false;
  private running: Running | undefined;
  private readonly terminal = new CommandTerminal(() => this.cancel());
  private inputs: CommandInputs = {};
  private live: Live;

  /**
   * @param workspace the folder, its settings and the recorder's program
   * @param memory what outlives the window: the task, the tasks last seen, what was typed
   */
  constructor(
    private readonly workspace: Workspace,
    private readonly memory: Pick<vscode.ExtensionContext, "globalState" | "workspaceState">,
  ) {
    const tasks = memory.globalState.get<Task[]>("tasks", []);
    this.live = { ...NOTHING, tasks, uploads: [], waiting: 0, busy: "" };
    this.disposables.push(
      this.changed,
      this.notices,
      this.terminal,
      workspace.onDidChange(() => void this.showAgain()),
      workspace.onDidChangeToken(() => void this.refreshServer()),
    );
  }

  dispose(): void {
    clearTimeout(this.settling);
    clearTimeout(this.resending);
    this.watcher?.end.dispose();
    for (const each of this.disposables) each.dispose();
  }

  get state(): ViewState {
    const { templates, neverContents, filters, timeLimit } = this.workspace.settings;
    return {
      ...this.live,
      ...{ templates, neverContents, filters, timeLimit },
      folders: this.workspace.folders,
      folder: this.workspace.folder?.path ?? null,
      notices: this.notices.list,
      taskId: this.taskId,
      draft: this.draft,
    };
  }

  get session(): Session | null {
    return this.live.session;
  }

  get tasks(): Task[] {
    return this.live.tasks;
  }

  /** What the conditions of commands and menus ask; undefined until the recorder was asked. */
  get contextKeys(): Record<string, unknown> {
    if (!this.live.known) return {};
    return { session: this.session ? "open" : "none", waiting: this.live.waiting > 0 };
  }

  get taskId(): string | null {
    return this.memory.globalState.get<string>("task") ?? null;
  }

  get draft(): Draft {
    return this.memory.workspaceState.get<Draft>("draft", NO_DRAFT);
  }

  async saveDraft(draft: Draft): Promise<void> {
    await this.memory.workspaceState.update("draft", draft);
  }

  /** Read again what is shown: the session, the tasks, the uploads. */
  async refresh(): Promise<void> {
    await Promise.all([this.refreshSession(), this.refreshServer()]);
  }

  /** Read again what somebody sees, once the settings or the folders are others. */
  private async showAgain(): Promise<void> {
    if (this.isShown() || this.session) await this.refresh();
  }

  /** See what changed in the worktree while nothing watched it. */
  async lookAgain(): Promise<void> {
    if (!this.watcher) await this.refreshSession();
  }

  /** Read the session again; a call while one runs is answered by one more after it. */
  async refreshSession(): Promise<void> {
    this.readAgain = true;
    this.reading ??= this.readSession();
    await this.reading;
  }

  private async readSession(): Promise<void> {
    while (this.readAgain) {
      this.readAgain = false;
      await this.notices.during("recorder", () => this.readOnce());
    }
    this.reading = undefined;
    this.live.known = true;
    this.resendLater();
    this.update();
  }

  private async readOnce(): Promise<void> {
    const before = this.session?.id;
    this.notices.set("folder", this.workspace.missing);
    if (!this.workspace.folder) {
      Object.assign(this.live, NOTHING);
      return this.watch();
    }
    try {
      const status = (await this.workspace.ask(["status", "--json"])) as Status;
      this.live.session = sessionOf(status);
      this.live.waiting = status.waiting;
      this.live.place = placeOf(status);
    } catch (error) {
      this.live.place = null;
      throw error;
    } finally {
      this.watch();
    }
    if (this.session?.id !== before || !this.live.offers.length) await this.readOffers();
  }

  /**
   * Ask the API, through the recorder, what became of this machine's uploads, and for its tasks
   * where one can be chosen. Where nobody sees them, nobody is asked.
   */
  async refreshServer(): Promise<void> {
    if (!this.isShown()) return;
    await this.notices.during("api", async () => {
      const history = (await this.workspace.send(["history", `--limit=${SHOWN}`, "--json"])) as History;
      this.live.uploads = uploadsOf(history);
      this.update();
      if (history.error) throw refusalFor(history.error);
      if (!this.session) await this.readTasks();
    });
    this.update();
  }

  /** Ask the API for its tasks; where it is away, those last seen stay. */
  async refreshTasks(): Promise<void> {
    await this.notices.during("api", () => this.readTasks());
    this.update();
  }

  private async readTasks(): Promise<void> {
    this.live.tasks = ((await this.workspace.send(["tasks", "list", "--json"])) as Tasks).tasks;
    await this.memory.globalState.update("tasks", this.live.tasks);
  }

  async chooseFolder(path: string): Promise<void> {
    await this.workspace.choose(path);
    Object.assign(this.live, NOTHING);
    this.notices.set("action", undefined);
    await this.refresh();
  }

  async chooseTask(id: string): Promise<void> {
    if (!this.live.tasks.some((each) => each.id === id)) return;
    await this.memory.globalState.update("task", id);
    this.update();
  }

  async createTask(task: Task): Promise<void> {
    await this.act(`Creating task ${task.id}`, async () => {
      const args = ["tasks", "create", "--json"];
      if (task.description) args.push(`--description=${task.description}`);
      await this.workspace.send([...args, "--", task.id, task.name]);
      await this.memory.globalState.update("task", task.id);
      await this.readTasks();
    });
  }

  async start(): Promise<void> {
    await this.act("Starting", async () => {
      const { path } = this.workspace.theFolder();
      const taskId = this.taskId;
      const draft = this.draft;
      if (!taskId) {
        const text = "Choose a task first, or create one.";
        throw new Refusal("task-missing", text, { action: "createTask" });
      }
      if (!draft.prompt.trim()) {
        throw new Refusal("prompt-missing", "Say in the prompt what is to be done.");
      }
      const unsaved = unsavedIn(path);
      if (unsaved.length) {
        const text = "Files have changes that are not saved. Save or revert them, then start:";
        throw new Refusal("not-saved", text, { details: unsaved });
      }
      const args = ["start", "--json", `--task=${taskId}`, "--prompt-file=-"];
      if (draft.system.trim()) args.push(`--system=${draft.system}`);
      if (this.workspace.settings.neverContents) args.push("--no-contents");
      try {
        await this.workspace.ask(args, draft.prompt);
      } finally {
        await this.refreshSession();
      }
    });
  }

  /** Ask the validator which commands may run with what is typed beside the buttons. */
  async setInputs(inputs: CommandInputs): Promise<void> {
    this.inputs = inputs;
    await this.notices.during("recorder", () => this.readOffers());
    this.update();
  }

  private async readOffers(): Promise<void> {
    if (!this.session) {
      this.live.offers = [];
      return;
    }
    const inputs = this.inputs;
    const args = Object.entries(inputs).flatMap(([kind, value]) =>
      value.split(/\s+/).flatMap((word) => (word ? [`--value=${kind}=${word}`] : [])),
    );
    const answer = (await this.workspace.ask(["commands", "--json", ...args])) as Commands;
    if (inputs !== this.inputs) return;
    this.live.offers = offersOf(answer, inputs.selector ?? "");
    const own = answer.commands.filter((rule) => rule.own);
    const commands = own.map((rule) => [rule.program, ...rule.arguments].join(" "));
    const { source, digest, agreed } = answer;
    this.live.rules = source && digest && !agreed ? { source, digest, commands } : null;
  }

  /** Agree to the repository's own commands, which were shown. */
  async agree(digest: string): Promise<void> {
    await this.act("Agreeing", async () => {
      await this.workspace.ask(["commands", "--yes", `--digest=${digest}`, "--json"]);
      await this.readOffers();
    });
  }

  async run(argv: string[], timeLimit: number): Promise<void> {
    const line = argv.join(" ");
    await this.act(`Running ${line}`, async () => {
      await vscode.workspace.saveAll(false);
      this.terminal.begin(line);
      const limit = timeLimit ? [`--time-limit=${timeLimit}`] : [];
      const args = ["run", "--json", ...limit, "--", ...argv];
      const show = (text: string): void => this.terminal.write(text);
      this.running = follow(await this.workspace.program(), args, this.workspace.call(), show);
      const soon = setTimeout(() => void this.refreshSession(), SETTLE);
      try {
        await this.running.done;
      } finally {
        clearTimeout(soon);
        this.running = undefined;
        await this.refreshSession();
      }
    });
  }

  cancel(): void {
    this.running?.interrupt();
  }

  async stop({ summary, ready, acceptSkipped }: StopOptions): Promise<void> {
    await this.act("Making the record, verifying and sending it", async () => {
      await vscode.workspace.saveAll(false);
      const args = ["stop", "--json"];
      if (summary.trim()) args.push(`--summary=${summary}`);
      if (ready) args.push("--ready");
      if (acceptSkipped) args.push("--accept-skipped");
      try {
        const stopped = (await this.workspace.send(args)) as Stopped;
        this.notices.set("action", endOf(stopped));
      } finally {
        await this.refresh();
        if (!this.session) await this.saveDraft({ ...this.draft, prompt: "" });
      }
    });
  }

  async discard(): Promise<void> {
    await this.act("Discarding", async () => {
      await this.workspace.ask(["discard", "--yes", "--json"]);
      await this.refreshSession();
    });
  }

  /** Send the records that wait. */
  async send(): Promise<void> {
    await this.act("Sending", async () => {
      const answer = (await this.workspace.send(["upload", "--json"])) as Sent;
      await this.refresh();
      const failed = answer.sent.find((each) => each.error)?.error;
      if (failed) throw refusalFor(failed);
    });
  }

  async mark(id: string, status: Upload["status"]): Promise<void> {
    await this.act(`Marking ${status}`, async () => {
      const draft = status === "draft" ? ["--draft"] : [];
      await this.workspace.send(["mark", "--json", ...draft, "--", id]);
      await this.refreshServer();
    });
  }

  async export(to: string, status: string, form: string): Promise<void> {
    const task = this.taskId;
    if (!task) return;
    await this.act("Exporting", async () => {
      const args = [`--task=${task}`, `--to=${to}`, `--status=${status}`, `--form=${form}`];
      const done = (await this.workspace.send(["export", "--json", ...args])) as Exported;
      const details = Object.entries(done.withheld).map(([id, why]) => `left out ${id}: ${why}`);
      const text = `${done.lines} line${done.lines === 1 ? "" : "s"} of ${task} in ${done.file}`;
      this.notices.set("action", { level: details.length ? "warning" : "info", text, details });
    });
  }

  openFile(path: string): void {
    const change = this.session?.changes.find((each) => each.path === path);
    if (!this.session || !change || change.kind === "delete") return;
    const file = vscode.Uri.joinPath(vscode.Uri.file(this.session.worktree), path);
    void vscode.window.showTextDocument(file, { preview: true, preserveFocus: true });
  }

  /** Do what a person asked for, one thing at a time; a refusal is told. */
  private async act(words: string, work: () => Promise<void>): Promise<void> {
    if (this.live.busy) return;
    this.live.busy = words;
    this.notices.set("action", undefined);
    this.update();
    await this.notices.during("action", work);
    this.live.busy = "";
    this.update();
  }

  /** Watch the files of a session under way, and nothing without one. */
  private watch(): void {
    const folder = this.session ? this.workspace.folder?.path : undefined;
    if (this.watcher?.folder === folder) return;
    this.watcher?.end.dispose();
    this.watcher = undefined;
    if (!folder) return;
    const pattern = new vscode.RelativePattern(vscode.Uri.file(folder), "**/*");
    const watcher = vscode.workspace.createFileSystemWatcher(pattern);
    const later = (): void => {
      if (!this.isShown()) return;
      clearTimeout(this.settling);
      this.settling = setTimeout(() => void this.refreshSession(), SETTLE);
    };
    watcher.onDidChange(later);
    watcher.onDidCreate(later);
    watcher.onDidDelete(later);
    this.watcher = { folder, end: watcher };
  }

  private resendLater(): void {
    clearTimeout(this.resending);
    if (this.live.waiting) this.resending = setTimeout(() => void this.resend(), RESEND);
  }

  /** Send what waits without a word; the API's notice tells whether it is still away. */
  private async resend(): Promise<void> {
    if (this.live.busy) return this.resendLater();
    const answer = await this.workspace.send(["upload", "--json"]).catch(() => undefined);
    const left = (answer as Sent | undefined)?.waiting ?? this.live.waiting;
    if (left === this.live.waiting) return this.resendLater();
    await this.refresh();
    if (!this.live.waiting) this.notices.set("action", undefined);
    this.update();
  }

  private update(): void {
    this.changed.fire();
  }
}

function unsavedIn(folder: string): string[] {
  return vscode.workspace.textDocuments
    .filter((each) => each.isDirty && each.uri.scheme === "file")
    .map((each) => each.uri.fsPath)
    .filter((path) => isInside(path, folder));
}
