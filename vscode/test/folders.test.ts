import assert from "node:assert/strict";
import { test } from "node:test";

import { isInside } from "../src/folders";

test("a file is inside a folder by its names, not by its letters", () => {
  assert.ok(isInside("/a/b/c.txt", "/a/b"));
  assert.ok(isInside("/a/b/..c", "/a/b/"));
  assert.ok(isInside("/a", "/"));
  for (const file of ["/a/b2/c.txt", "/a/c.txt", "/a/b", "/"]) assert.ok(!isInside(file, "/a/b"), file);
});
