/** A machine of its own for the extension: an API with its Postgres, a repository, an editor. */

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface Places {
  /** The program `debrief`. */
  debrief: string;
  /** Folder with `node` and `editor`, in which npm installed node, and code-server with pnpm. */
  programs: string;
  /** The packaged extension. */
  vsix: string;
}

export class Stage {
  readonly root = mkdtempSync(join(tmpdir(), "debrief-editor-"));
  readonly home = join(this.root, "home");
  readonly bin: string;
  /** The program `debrief`, which notes each call of it. */
  readonly recorder = join(this.root, "debrief");
  token = "";
  api = "";
  private readonly children: ChildProcess[] = [];

  constructor(readonly places: Places) {
    // Postgres of its own runs as another user when this one is root.
    chmodSync(this.root, 0o755);
    this.bin = join(places.programs, "editor", "node_modules", ".bin");
    mkdirSync(this.home);
    const log = join(this.root, "calls");
    const script = `#!/bin/sh\necho "$*" >>'${log}'\nexec '${places.debrief}' "$@"\n`;
    this.write(this.root, { debrief: script, calls: "" });
    chmodSync(this.recorder, 0o755);
    // The editor asks a login shell for its environment.
    this.write(this.root, { ".profile": `export PATH="${this.env.PATH}"\n` });
  }

  /** Return the environment of everything that runs on this stage. */
  get env(): NodeJS.ProcessEnv {
    const { HOME: _, ...rest } = process.env;
    const clean = Object.fromEntries(
      Object.entries(rest).filter(([name]) => !/^(DEBRIEF_|VSCODE_|npm_|DATABASE_URL)/.test(name)),
    );
    const node = join(this.places.programs, "node", "node_modules", "node", "bin");
    const path = [node, this.bin, dirname(this.places.debrief), process.env.PATH].join(":");
    const xdg = ["CONFIG", "DATA", "CACHE", "STATE"].map((kind) => [
      `XDG_${kind}_HOME`,
      join(this.root, "xdg", kind.toLowerCase()),
    ]);
    return {
      ...clean,
      ...Object.fromEntries(xdg),
      ...{ HOME: this.root, PATH: path, DEBRIEF_HOME: this.home, LANG: "C.UTF-8" },
      ...{ GIT_CONFIG_GLOBAL: "/dev/null", npm_config_update_notifier: "false" },
    };
  }

  /** Return what the recorder was asked until now, a line a call. */
  get calls(): string[] {
    return readFileSync(join(this.root, "calls"), "utf8").split("\n").filter(Boolean);
  }

  run(folder: string, program: string, ...args: string[]): string {
    return execFileSync(program, args, { cwd: folder, env: this.env, encoding: "utf8", stdio: "pipe" });
  }

  git(folder: string, ...args: string[]): string {
    const who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    return this.run(folder, "git", ...who, ...args).trim();
  }

  write(folder: string, files: Record<string, string>): void {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
  }

  /** Make a repository with one commit. */
  repository(name: string, files: Record<string, string>): string {
    const folder = join(this.root, name);
    this.write(folder, files);
    this.git(folder, "init", "-q", "-b", "main");
    this.git(folder, "add", "-A");
    this.git(folder, "commit", "-qm", "Start");
    return folder;
  }

  /** Start the API on a port; the same one again after `stopApi` has the same database. */
  async startApi(port: number): Promise<ChildProcess> {
    const file = join(this.root, "token");
    this.api = `http://127.0.0.1:${port}`;
    const args = ["serve", "--port", String(port)];
    const child = this.start(this.places.debrief, this.token ? args : [...args, "--token-file", file]);
    await until("the API", async () => (await fetch(`${this.api}/health`)).ok);
    this.token ||= readFileSync(file, "utf8").trim();
    return child;
  }

  start(program: string, args: string[], env: NodeJS.ProcessEnv = this.env): ChildProcess {
    const child = spawn(program, args, { cwd: this.root, env, stdio: ["ignore", "pipe", "pipe"] });
    const log = join(this.root, `${this.children.length}.log`);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (piece: Buffer) => writeFileSync(log, piece, { flag: "a" }));
    }
    this.children.push(child);
    return child;
  }

  /** Ask the API, as its owner may. */
  async get(path: string): Promise<string> {
    const headers = { Authorization: `Bearer ${this.token}` };
    const answer = await fetch(this.api + path, { headers });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.text();
  }

  async post(path: string, body: unknown): Promise<void> {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    const answer = await fetch(this.api + path, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  }

  async end(): Promise<void> {
    for (const child of this.children) await ended(child);
  }
}

/** End a child and wait until it has. */
export async function ended(child: ChildProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const end = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await end;
}

export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  seconds = 60,
): Promise<void> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    try {
      if (await holds()) return;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
