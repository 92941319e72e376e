/** The Python recorder, run as a program: it alone knows git, the allowlist and the record. */

import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

import { refusalOf } from "./answers";
import { Refusal } from "./refusal";

export interface Call {
  /** The folder that is recorded. */
  cwd: string;
  /** Added to the environment: settings, and the token where something is sent. */
  env: Record<string, string>;
  /** Written to its standard input. */
  input?: string;
}

/** Run `debrief record … --json` and return its answer; throws a `Refusal` with its reason. */
export async function ask(program: string, args: string[], call: Call): Promise<unknown> {
  const child = start(program, args, call);
  const [out, errors, code] = await Promise.all([all(child.stdout), all(child.stderr), end(child)]);
  if (code !== 0) throw refusalOf(errors, program);
  const answer = parsed(out);
  if (answer !== undefined) return answer;
  const text = `${program} gave no answer that can be read.`;
  throw new Refusal("recorder.failed", text, { details: [out.slice(0, 200)] });
}

export interface Running {
  /** Ends when the command has; a `Refusal` when it was not run. */
  done: Promise<void>;
  interrupt(): void;
}

/** Run and record a command whose output is shown as it comes. */
export function follow(
  program: string,
  args: string[],
  call: Call,
  show: (text: string) => void,
): Running {
  const child = start(program, args, call);
  const errors = all(child.stderr);
  if (child.stdout) {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const piece = parsed(line) as { output?: unknown } | undefined;
      if (typeof piece?.output === "string") show(piece.output);
    });
  }
  const done = end(child).then(async (code) => {
    if (code !== 0) throw refusalOf(await errors, program);
  });
  return { done, interrupt: () => child.kill("SIGINT") };
}

function start(program: string, args: string[], call: Call): ChildProcess {
  const child = spawn(program, ["record", ...args], {
    cwd: call.cwd,
    env: { ...process.env, PYTHONUTF8: "1", NO_COLOR: "1", ...call.env },
    // A group of its own: a reload of the window ends the extension, not what is being recorded.
    detached: process.platform !== "win32",
    stdio: [call.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  child.stdin?.on("error", () => undefined).end(call.input);
  return child;
}

async function all(stream: NodeJS.ReadableStream | null): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of stream ?? []) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces).toString("utf8");
}

function end(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once("error", (error) => {
      const text = `The recorder cannot be started: ${error.message}`;
      reject(new Refusal("recorder.missing", text, { action: "settings" }));
    });
    child.once("close", resolve);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
