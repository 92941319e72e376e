import assert from "node:assert/strict";
import { test } from "node:test";

import { requestOf } from "../src/requests";

const TAKEN = [
  { type: "shown" },
  { type: "focused" },
  { type: "chooseTask", id: "cart" },
  { type: "draft", draft: { template: "", system: "", prompt: "Add a discount." } },
  { type: "inputs", inputs: { selector: "web", package: "left-pad" } },
  { type: "run", argv: ["pnpm", "test"], timeLimit: 600 },
  { type: "stop", options: { summary: "", ready: true, acceptSkipped: false } },
  { type: "mark", id: "1", status: "draft" },
  { type: "act", action: "setToken" },
];
for (const message of TAKEN) {
  test(`a message of the page is taken: ${message.type}`, () => {
    assert.deepEqual(requestOf(message), message);
  });
}

const DROPPED: [string, unknown][] = [
  ["nothing", null],
  ["a text", "start"],
  ["no type", {}],
  ["an unknown type", { type: "delete" }],
  ["the name of what every object has", { type: "constructor" }],
  ["a field that is missing", { type: "chooseTask" }],
  ["a field too many", { type: "start", force: true }],
  ["a field of another type", { type: "chooseFolder", path: 1 }],
  ["a program that is no text", { type: "run", argv: ["pnpm", null], timeLimit: 600 }],
  ["a time limit without end", { type: "run", argv: ["pnpm", "test"], timeLimit: Infinity }],
  ["a status that there is not", { type: "mark", id: "1", status: "best" }],
  ["an action that there is not", { type: "act", action: "toString" }],
  ["a kind that becomes an option", { type: "inputs", inputs: { "--agree": "x" } }],
  ["a text without end", { type: "chooseTask", id: "x".repeat(1_000_001) }],
];
for (const [what, message] of DROPPED) {
  test(`a message is dropped: ${what}`, () => {
    assert.equal(requestOf(message), undefined);
  });
}
