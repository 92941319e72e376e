import assert from "node:assert/strict";
import { test } from "node:test";

import { endOf, offersOf, placeOf, refusalOf, sessionOf } from "../src/answers";
import type { Commands, Status } from "../src/answers";

function error(code: string, facts: object = {}, message = "The reason. The next move."): string {
  const problem = { code, culprit: "x", reason: "is wrong", nextMove: "", message, facts };
  return `debrief: a warning for people\n${JSON.stringify({ error: problem })}\n`;
}

test("what is not clean is listed", () => {
  const refusal = refusalOf(error("not-clean", { paths: ["a.txt", "b.txt"] }), "debrief");
  assert.match(refusal.message, /not clean/);
  assert.deepEqual(refusal.details, ["a.txt", "b.txt"]);
});

test("a wrong token has the button that sets another", () => {
  assert.equal(refusalOf(error("token-wrong"), "debrief").action, "setToken");
});

test("a record that is kept is told as kept, with the reason", () => {
  const refusal = refusalOf(error("api-away", { kept: true }), "debrief");
  assert.match(refusal.message, /kept on this machine, .* The API does not answer/);
  assert.equal(refusal.notice.level, "warning");
});

test("an error without words of the extension's own has the recorder's", () => {
  assert.equal(refusalOf(error("failed"), "debrief").message, "The reason. The next move.");
});

test("a recorder that knows no JSON is too old", () => {
  assert.equal(refusalOf("Error: No such option: --json\n", "/bin/debrief").code, "recorder.old");
});

test("a recorder that breaks shows its last lines", () => {
  const refusal = refusalOf("Traceback\n  File\nMemoryError\n", "/bin/debrief");
  assert.deepEqual([refusal.code, refusal.details.at(-1)], ["recorder.failed", "MemoryError"]);
});

const filled = (command: string[], reason = ""): object => ({ command, accepted: !reason, reason });
const rule = (words: string, answer: object | null, own = false): object => {
  const [program, ...rest] = words.split(" ");
  return { program, arguments: rest, isCheck: false, timeLimit: 600, own, filled: answer };
};
const COMMANDS = {
  ...{ source: null, digest: null, agreed: true },
  commands: [
    rule("pnpm test", filled(["pnpm", "test"])),
    rule("pnpm add -D <package>+", null),
    rule("pnpm remove <name>+", filled(["pnpm", "remove", "$x"], "no pattern has it")),
    rule("pnpm --filter <selector> test", filled(["pnpm", "--filter", "web", "test"])),
    rule("uv run pytest", filled(["uv", "run", "pytest"]), true),
  ],
} as unknown as Commands;

test("a button is what the validator says of the command, and nothing else", () => {
  assert.deepEqual(
    offersOf(COMMANDS, "").map(({ title, argv, problem }) => [title, argv.join(" "), problem]),
    [
      ["pnpm test", "pnpm test", ""],
      ["pnpm add -D", "", "Needs <package>+"],
      ["pnpm remove", "pnpm remove $x", "no pattern has it"],
      ["uv run pytest", "uv run pytest", ""],
    ],
  );
});

test("with a filter the buttons are those that take one, and the repository's own", () => {
  const titles = offersOf(COMMANDS, "web").map((each) => each.title);
  assert.deepEqual(titles, ["pnpm test", "uv run pytest"]);
});

test("a repository's own command cannot be pressed before its person agreed", () => {
  const offers = offersOf({ ...COMMANDS, agreed: false }, "");
  assert.deepEqual(offers.filter((each) => each.problem === "Agree to it first").length, 1);
  assert.equal(offers[0]?.problem, "");
});

test("a session that was stopped is told apart from one under way", () => {
  const session = { id: "1", state: "stopped", commands: [] };
  assert.equal(sessionOf({ session } as unknown as Status)?.stopped, true);
  assert.equal(sessionOf({ session: null } as unknown as Status), null);
});

test("the page gets no more of an answer than it shows", () => {
  const command = { cmd: "pnpm", args: ["test"], cwd: ".", state: "ended", exitCode: 0, output: "long" };
  const session = { id: "1", system: "secret", state: "recording", elapsedSeconds: 7, commands: [command] };
  const place = { repoName: "shop", branch: null, head: "2adf1ed2", notClean: [] };
  const status = { ...place, worktree: "/shop", repoRemote: "x", session, waiting: 0 } as unknown as Status;
  assert.deepEqual(placeOf(status), place);
  assert.doesNotMatch(JSON.stringify(sessionOf(status)), /secret|elapsed|long/);
});

test("the end of a session tells warnings and what it lacks", () => {
  const meta = { changes: [{}], warnings: ["merged"], redactions: { count: 2 } };
  const stopped = { status: "draft", notReady: ["no check"], meta };
  const { level, text, details } = endOf(stopped);
  assert.equal(level, "warning");
  assert.match(text, /stored as draft: 1 file,/);
  assert.deepEqual(details, ["merged", "2 secrets were replaced", "Not ready: no check"]);
});
