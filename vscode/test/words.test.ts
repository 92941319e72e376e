import assert from "node:assert/strict";
import { test } from "node:test";

import { counted, duration, elapsed, shortIds } from "../src/webview/words";

const START = "2026-11-23T10:00:00Z";
const after = (seconds: number): number => Date.parse(START) + seconds * 1000;

test("time that went by is told to the second", () => {
  assert.equal(elapsed(START, after(7)), "0:07");
  assert.equal(elapsed(START, after(754)), "12:34");
  assert.equal(elapsed(START, after(3723)), "1:02:03");
  assert.equal(elapsed(START, after(-5)), "0:00");
});

test("what a command took is told as a person would", () => {
  assert.deepEqual([412, 59_960, 125_000].map(duration), ["0.4 s", "60.0 s", "2 min 5 s"]);
});

test("one is one, and more are many", () => {
  assert.deepEqual([0, 1, 2].map((count) => counted(count, "file")), ["0 files", "1 file", "2 files"]);
});

test("ids of commits are as short as git shows them", () => {
  const id = "2adf1ed22f63f9b5704ed6a955fc81d004ee53f5";
  assert.equal(shortIds(`apply to ${id} instead`), "apply to 2adf1ed2 instead");
  assert.equal(shortIds("a sha of 8: 2adf1ed2"), "a sha of 8: 2adf1ed2");
});
