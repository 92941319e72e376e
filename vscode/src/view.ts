import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

import type { Request, ViewState } from "./model";
import { requestOf } from "./requests";

/** The sidebar's page: shows a state, and hands on what a person asks for. */
export class RecorderView implements vscode.WebviewViewProvider {
  static readonly id = "dataset.recorder";
  private view: vscode.WebviewView | undefined;

  /**
   * @param root folder of the extension
   * @param state returns what is to be shown
   * @param handle does what a person asks for
   */
  constructor(
    private readonly root: vscode.Uri,
    private readonly state: () => ViewState,
    private readonly handle: (request: Request) => void,
  ) {}

  get visible(): boolean {
    return this.view?.visible ?? false;
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    const out = vscode.Uri.joinPath(this.root, "out");
    view.webview.options = { enableScripts: true, enableForms: false, localResourceRoots: [out] };
    view.webview.onDidReceiveMessage((message: unknown) => {
      const request = requestOf(message);
      if (request) this.handle(request);
    });
    view.onDidDispose(() => (this.view = undefined));
    view.webview.html = this.html(view.webview, out);
  }

  /** Show the state as it is now. */
  update(): void {
    void this.view?.webview.postMessage(this.state());
  }

  private html(webview: vscode.Webview, out: vscode.Uri): string {
    const nonce = randomBytes(18).toString("base64");
    const address = (name: string): string =>
      webview.asWebviewUri(vscode.Uri.joinPath(out, name)).toString();
    const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Session Recorder</title>
<link rel="stylesheet" href="${address("page.css")}">
</head>
<body>
<script nonce="${nonce}" src="${address("page.js")}"></script>
</body>
</html>`;
  }
}
