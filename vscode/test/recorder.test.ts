import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { locate } from "../src/locate";
import { ask, follow } from "../src/recorder";
import { Refusal } from "../src/refusal";

const root = mkdtempSync(join(tmpdir(), "recorder-"));

function program(path: string, script = "exit 0"): string {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

const call = { cwd: root, env: {} };
const inVenv = program("shop/.venv/bin/debrief");
const onPath = program("usr/bin/debrief");
const path = `relative:${dirname(onPath)}`;

test("the folder's own recorder comes before PATH's", async () => {
  assert.equal(await locate("", [join(root, "shop")], path), inVenv);
  assert.equal(await locate("", [join(root, "other")], path), onPath);
});

test("the setting comes first, and is not replaced where it is wrong", async () => {
  assert.equal(await locate(onPath, [join(root, "shop")], path), onPath);
  for (const wrong of [join(root, "nowhere"), "debrief", root]) {
    await assert.rejects(locate(wrong, [join(root, "shop")], path), /recorderPath/);
  }
});

test("a recorder that is missing is told with what to do", async () => {
  await assert.rejects(locate("", [], "relative"), (error: Refusal) => {
    assert.match(error.message, /not installed.*pip/);
    return error.action === "settings";
  });
});

test("an answer is read, and the recorder has what it is given", async () => {
  const echo = program("echo", 'printf \'{"args": "%s", "typed": "%s", "url": "%s"}\' "$*" "$(cat)" "$URL"');
  const answer = await ask(echo, ["status", "--json"], { cwd: root, env: { URL: "u" }, input: "words" });
  assert.deepEqual(answer, { args: "record status --json", typed: "words", url: "u" });
});

test("a refusal of the recorder is its own words", async () => {
  const refusing = program(
    "refusing",
    'echo \'{"error": {"code": "busy", "message": "Another process is at it.", "facts": {}}}\' >&2; exit 1',
  );
  await assert.rejects(ask(refusing, [], call), { code: "busy", message: "Another process is at it." });
});

test("an answer that is none is told", async () => {
  await assert.rejects(ask(program("mad", "echo hello"), [], call), { code: "recorder.failed" });
});

test("a program that cannot be started is told", async () => {
  await assert.rejects(ask(join(root, "gone"), [], call), { code: "recorder.missing" });
});

test("output is shown as it comes, and the command can be interrupted", async () => {
  const script = `echo '{"output": "one"}'; echo 'not of the contract'; sleep 60 & wait`;
  const slow = program("slow", `trap 'kill $!; echo "{\\"output\\": \\"two\\"}"; exit 0' INT; ${script}`);
  const seen: string[] = [];
  const running = follow(slow, ["run"], call, (text) => {
    seen.push(text);
    if (seen.length === 1) running.interrupt();
  });
  await running.done;
  assert.deepEqual(seen, ["one", "two"]);
});
