/** What the page shows, and what it may ask for: the contract between the extension and its page. */

export interface Task {
  id: string;
  name: string;
  description: string | null;
}

export interface RanCommand {
  /** As it was typed: program and arguments. */
  line: string;
  cwd: string;
  running: boolean;
  /** Null while it runs, and when it was ended before its own end. */
  exitCode: number | null;
  /** How it ended where there is no exit code. */
  ending: string;
  durationMs: number;
}

export interface FileChange {
  path: string;
  kind: "create" | "update" | "delete";
  added: number;
  removed: number;
}

export interface Session {
  id: string;
  taskId: string;
  prompt: string;
  worktree: string;
  branch: string | null;
  baseRef: string;
  startedAt: string;
  /** `none`: the record tells which files changed, and nothing of what is in them. */
  contents: "full" | "none";
  changes: FileChange[];
  skipped: { path: string; reason: string }[];
  commands: RanCommand[];
  warnings: string[];
  notReady: string[];
  /** A stop was ended while it sent the record: it is made, and only to be sent. */
  stopped: boolean;
}

/** Where a session would start. */
export interface Place {
  repoName: string;
  branch: string | null;
  head: string;
  /** Paths that keep a session from starting. */
  notClean: string[];
}

/** A command of the validator's table, filled with what is typed in the page. */
export interface Offer {
  title: string;
  /** Empty where a value is missing. */
  argv: string[];
  /** Why it may not run as it is; empty when it may. */
  problem: string;
  isCheck: boolean;
  /** The repository's owner added it. */
  own: boolean;
  /** Seconds that it may take. */
  timeLimit: number;
  /** The kinds of values that it takes, such as `package`. */
  kinds: string[];
}

export interface Upload {
  sessionId: string;
  taskId: string;
  repoName: string;
  stoppedAt: string;
  /** Otherwise it waits on this machine. */
  isSent: boolean;
  status: "draft" | "ready" | "";
  notReady: string[];
}

/** A refusal or a remark that explains itself. */
export interface Notice {
  level: "error" | "warning" | "info";
  text: string;
  /** One line each, such as the files that are not committed. */
  details: string[];
  action?: Action;
}

export const ACTIONS = {
  setToken: "Set API token",
  settings: "Open settings",
  send: "Send now",
  createTask: "Create task",
  openFolder: "Open folder",
  retry: "Try again",
} as const;

export type Action = keyof typeof ACTIONS;

export interface Folder {
  name: string;
  path: string;
}

export interface Draft {
  template: string;
  system: string;
  prompt: string;
}

export interface ViewState {
  folders: Folder[];
  folder: string | null;
  notices: Notice[];
  tasks: Task[];
  taskId: string | null;
  templates: { name: string; text: string }[];
  draft: Draft;
  /** Contents of files are never recorded. */
  neverContents: boolean;
  filters: string[];
  /** Seconds that any command may take; 0 for each one's own limit. */
  timeLimit: number;
  /** False until the recorder was asked once. */
  known: boolean;
  /** Null where it cannot be told. */
  place: Place | null;
  session: Session | null;
  offers: Offer[];
  /** The repository's own commands that its person has not agreed to yet. */
  rules: { source: string; digest: string; commands: string[] } | null;
  /** How many records of this machine wait to be sent. */
  waiting: number;
  uploads: Upload[];
  /** What is being done just now, in words; empty when nothing is. */
  busy: string;
}

/** What is typed beside the buttons of commands, by kind. */
export type CommandInputs = Record<string, string>;

export interface StopOptions {
  /** Closing words; empty for those made from the facts. */
  summary: string;
  /** Mark it ready, if nothing is missing. */
  ready: boolean;
  /** It may be ready without the changes that are left out. */
  acceptSkipped: boolean;
}

export type Request =
  /** The page is there, and shows nothing yet. */
  | { type: "shown" }
  /** A person turned to the page. */
  | { type: "focused" }
  | { type: "chooseFolder"; path: string }
  | { type: "chooseTask"; id: string }
  | { type: "createTask" }
  | { type: "draft"; draft: Draft }
  | { type: "start" }
  | { type: "inputs"; inputs: CommandInputs }
  | { type: "run"; argv: string[]; timeLimit: number }
  | { type: "agree"; digest: string }
  | { type: "cancel" }
  | { type: "stop"; options: StopOptions }
  | { type: "discard" }
  | { type: "mark"; id: string; status: "draft" | "ready" }
  | { type: "export" }
  | { type: "openFile"; path: string }
  | { type: "act"; action: Action };
