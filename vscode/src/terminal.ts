import * as vscode from "vscode";

/** Shows what commands print, colours included; Ctrl+C there interrupts the one that runs. */
export class CommandTerminal implements vscode.Pseudoterminal, vscode.Disposable {
  private readonly written = new vscode.EventEmitter<string>();
  readonly onDidWrite = this.written.event;
  private terminal: vscode.Terminal | undefined;
  private waiting: string[] | undefined;

  /** @param interrupt ends the command that runs */
  constructor(private readonly interrupt: () => void) {}

  open(): void {
    for (const text of this.waiting ?? []) this.written.fire(text);
    this.waiting = undefined;
  }

  close(): void {
    this.terminal = undefined;
  }

  handleInput(data: string): void {
    if (data === "\x03") this.interrupt();
  }

  /** Show the terminal, and the command that is about to run; the focus stays where it is. */
  begin(line: string): void {
    if (!this.terminal) {
      this.waiting = [];
      const iconPath = new vscode.ThemeIcon("record");
      this.terminal = vscode.window.createTerminal({ name: "Session Recorder", pty: this, iconPath });
    }
    this.terminal.show(true);
    this.write(`\x1b[1m$ ${line}\x1b[0m\n`);
  }

  write(text: string): void {
    const lines = text.replace(/\r?\n/g, "\r\n");
    if (this.waiting) this.waiting.push(lines);
    else this.written.fire(lines);
  }

  dispose(): void {
    this.terminal?.dispose();
    this.written.dispose();
  }
}
