// Bundles the extension and its page into out/; --tests and --editor, what tests them as well.
import { copyFile, readdir, rm } from "node:fs/promises";
import { build } from "esbuild";

const shared = {
  bundle: true,
  charset: "utf8",
  legalComments: "none",
  loader: { ".svg": "text", ".css": "text" },
  logLevel: "warning",
  target: "es2022",
};

await rm("out", { recursive: true, force: true });
// The package has the project's licence.
await copyFile("../LICENSE", "LICENSE");
const onNode = { ...shared, platform: "node", format: "cjs", external: ["vscode"] };
await build({ ...onNode, entryPoints: ["src/extension.ts"], outdir: "out", minify: true });
await build({ ...shared, entryPoints: ["src/webview/page.ts"], outdir: "out", minify: true });
await build({
  ...shared, entryPoints: ["src/webview/page.css"], outdir: "out", minify: true, loader: {},
});
if (process.argv.includes("--tests")) {
  const tests = (await readdir("test")).filter((name) => name.endsWith(".test.ts"));
  await build({ ...onNode, entryPoints: tests.map((name) => `test/${name}`), outdir: "out/tests" });
}
if (process.argv.includes("--editor")) {
  const external = ["playwright-core", "axe-core"];
  await build({ ...onNode, external, entryPoints: ["test/editor/story.ts"], outdir: "out/editor" });
}
