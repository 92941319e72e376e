import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

interface Package {
  version: string;
  license: string;
  activationEvents: string[];
  repository?: unknown;
  homepage?: unknown;
  bugs?: unknown;
}

const { version, license, activationEvents, repository, homepage, bugs } = JSON.parse(
  readFileSync("package.json", "utf8"),
) as Package;
const project = readFileSync("../pyproject.toml", "utf8");

test("the package names the project's version and licence, and no address that the project does not", () => {
  assert.ok(project.includes(`\nversion = "${version}"\n`));
  assert.ok(project.includes(`\nlicense = "${license}"\n`));
  const addresses = JSON.stringify([repository, homepage, bugs]).match(/https?:\/\/[^"]+/g) ?? [];
  assert.deepEqual(addresses.filter((each) => !project.includes(each)), []);
});

test("the view and the commands alone start the extension", () => {
  assert.deepEqual(activationEvents, []);
});
