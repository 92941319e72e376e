/** What the recorder answers with `--json`, as the page shows it; `docs/recorder.md` has the forms. */

import type { Action, Notice, Offer, Place, RanCommand, Session, Task, Upload } from "./model";
import { Refusal } from "./refusal";

export interface Status extends Place {
  session: (Omit<Session, "commands" | "stopped"> & { state: string; commands: Ran[] }) | null;
  waiting: number;
}

interface Ran {
  cmd: string;
  args: string[];
  cwd: string;
  state: "running" | "ended" | "interrupted";
  exitCode: number | null;
  ending: string;
  durationMs: number;
}

interface Rule {
  program: string;
  arguments: string[];
  isCheck: boolean;
  timeLimit: number;
  own: boolean;
  /** With the values that were given; null where one is missing. */
  filled: { command: string[]; accepted: boolean; reason: string } | null;
}

export interface Commands {
  source: string | null;
  digest: string | null;
  agreed: boolean;
  commands: Rule[];
}

export interface Stopped {
  status: string;
  notReady: string[];
  meta: { changes: unknown[]; warnings: string[]; redactions: { count: number } };
}

export interface History {
  sessions: (Omit<Upload, "isSent"> & { state: string })[];
  error: Problem | null;
}

export interface Tasks {
  tasks: Task[];
}

export interface Sent {
  sent: { error: Problem | null }[];
  waiting: number;
}

export interface Exported {
  file: string;
  lines: number;
  withheld: Record<string, string>;
}

interface Problem {
  code: string;
  culprit: string;
  reason: string;
  message: string;
  facts: { paths?: string[]; reasons?: string[]; kept?: boolean };
}

/** The buttons that mend what an error's code names. */
const MOVES: Record<string, Action> = {
  "api-not-set": "settings",
  "api-wrong": "settings",
  "api-away": "retry",
  "token-missing": "setToken",
  "token-wrong": "setToken",
  "token-scope": "setToken",
  "no-folder": "openFolder",
  "not-a-repository": "openFolder",
  "task-missing": "createTask",
};

/** The recorder speaks of its command line; a person at the editor has buttons. */
const WORDS: Record<string, string> = {
  "api-away": "The API does not answer.",
  "api-not-set": "No API is set. Records go to the address in the setting dataset.apiBaseUrl.",
  "token-missing": "No API token is set. One is made with: debrief tokens create.",
  "token-wrong": "The API refused the token. Set another one.",
  "no-session": "No session is under way in this folder.",
  "not-clean": "The worktree is not clean. Commit, stash or revert these, then start:",
  "no-commit": "The repository has no commit yet. A session begins at a commit: make one.",
  "not-a-repository": "This folder lies in no git repository. Open one, or make it one: git init.",
};

/** Return the refusal that the recorder ended with. */
export function refusalOf(errors: string, program: string): Refusal {
  const problem = problemIn(errors);
  if (problem) return refusalFor(problem);
  if (errors.includes("No such option: --json") || errors.includes("No such command")) {
    return new Refusal("recorder.old", `${program} is too old for this extension. Update Debrief.`, {
      action: "retry",
    });
  }
  const last = errors.trim().split("\n").slice(-3);
  return new Refusal("recorder.failed", `${program} failed:`, { details: last });
}

export function refusalFor(problem: Problem): Refusal {
  const { code, facts } = problem;
  const action = MOVES[code];
  const more = action ? { action } : {};
  if (facts.kept) {
    const why = WORDS[code] ?? facts.reasons?.join("; ") ?? problem.reason;
    const text = `The record is kept on this machine, and is sent when the API takes it. ${why}`;
    // What waits has a button of its own.
    return new Refusal("kept", text, code === "api-away" ? {} : more);
  }
  const away = code === "api-away" ? [`${problem.culprit}: ${problem.reason}`] : undefined;
  const several = facts.reasons && facts.reasons.length > 1 ? facts.reasons : [];
  const details = facts.paths ?? away ?? several;
  return new Refusal(code, WORDS[code] ?? problem.message, { details, ...more });
}

function problemIn(errors: string): Problem | undefined {
  for (const line of errors.trim().split("\n").reverse()) {
    try {
      const value = JSON.parse(line) as { error?: Problem };
      if (value.error) return { ...value.error, facts: value.error.facts ?? {} };
    } catch {
      // A warning for people stands before it.
    }
  }
  return undefined;
}

/** Return where a session would start; the rest of a status is not the page's. */
export function placeOf({ repoName, branch, head, notClean }: Status): Place {
  return { repoName, branch, head, notClean };
}

export function sessionOf({ session }: Status): Session | null {
  if (!session) return null;
  const { id, taskId, prompt, worktree, branch, baseRef, startedAt, contents } = session;
  const { changes, skipped, warnings, notReady, state, commands } = session;
  return {
    ...{ id, taskId, prompt, worktree, branch, baseRef, startedAt, contents },
    ...{ changes, skipped, warnings, notReady },
    stopped: state === "stopped",
    commands: commands.map(ranOf),
  };
}

function ranOf(ran: Ran): RanCommand {
  const { cwd, exitCode, ending, durationMs } = ran;
  const line = [ran.cmd, ...ran.args].join(" ");
  return { line, cwd, running: ran.state === "running", exitCode, ending, durationMs };
}

/** Return the buttons: those with a filter where one is typed, those without one otherwise. */
export function offersOf(answer: Commands, filter: string): Offer[] {
  const takesFilter = (rule: Rule): boolean => rule.arguments.includes("<selector>");
  return answer.commands
    .filter((rule) => rule.own || takesFilter(rule) === (filter.trim() !== ""))
    .map((rule) => ({
      title: [rule.program, ...rule.arguments]
        .filter((word) => !/^<.*>\+?$/.test(word) && word !== "--filter")
        .join(" "),
      argv: rule.filled?.command ?? [],
      problem: rule.own && !answer.agreed ? "Agree to it first" : problemOf(rule),
      isCheck: rule.isCheck,
      own: rule.own,
      timeLimit: rule.timeLimit,
      kinds: rule.arguments.flatMap((word) => /^<(.*)>\+?$/.exec(word)?.[1] ?? []),
    }));
}

function problemOf(rule: Rule): string {
  if (rule.filled) return rule.filled.accepted ? "" : rule.filled.reason;
  return `Needs ${rule.arguments.filter((word) => word.startsWith("<")).join(" and ")}`;
}

export function uploadsOf(history: History): Upload[] {
  return history.sessions.map((entry) => {
    const { sessionId, taskId, repoName, stoppedAt, status, notReady } = entry;
    const isSent = entry.state === "sent";
    return { sessionId, taskId, repoName, stoppedAt, status, notReady, isSent };
  });
}

/** Return what became of a session that was stopped. */
export function endOf(stopped: Stopped): Notice {
  const { changes, warnings, redactions } = stopped.meta;
  const secrets = redactions.count ? [`${redactions.count} secrets were replaced`] : [];
  const lacks = stopped.notReady.map((each) => `Not ready: ${each}`);
  const files = `${changes.length} file${changes.length === 1 ? "" : "s"}`;
  return {
    level: warnings.length ? "warning" : "info",
    text: `Sent and stored as ${stopped.status}: ${files}, verified to rebuild.`,
    details: [...warnings, ...secrets, ...lacks],
  };
}
