import * as vscode from "vscode";

import { Controller } from "./controller";
import { dialogs } from "./dialogs";
import { ACTIONS, type Action, type Request } from "./model";
import { RecorderView } from "./view";
import { Workspace } from "./workspace";

const SHOW = `${RecorderView.id}.focus`;

export function activate(context: vscode.ExtensionContext): void {
  const workspace = new Workspace(context);
  const controller = new Controller(workspace, context);
  const ask = dialogs(controller, (token) => workspace.setToken(token));
  const view = new RecorderView(context.extensionUri, () => controller.state, handle);
  controller.isShown = () => view.visible;
  const status = vscode.window.createStatusBarItem("dataset.status", vscode.StatusBarAlignment.Left);
  status.name = "Session Recorder";
  status.command = SHOW;

  const actions: Record<Action, () => unknown> = {
    setToken: ask.setToken,
    settings: () => vscode.commands.executeCommand("workbench.action.openSettings", "dataset."),
    send: () => controller.send(),
    createTask: ask.createTask,
    openFolder: () => vscode.commands.executeCommand("workbench.action.files.openFolder"),
    retry: () => controller.refresh(),
  };

  function handle(request: Request): void {
    switch (request.type) {
      case "shown":
        view.update();
        return void controller.refresh();
      case "focused":
        return void controller.lookAgain();
      case "chooseFolder":
        return void controller.chooseFolder(request.path);
      case "chooseTask":
        return void controller.chooseTask(request.id);
      case "createTask":
        return void ask.createTask();
      case "draft":
        return void controller.saveDraft(request.draft);
      case "start":
        return void controller.start();
      case "inputs":
        return void controller.setInputs(request.inputs);
      case "run":
        return void controller.run(request.argv, request.timeLimit);
      case "agree":
        return void controller.agree(request.digest);
      case "cancel":
        return controller.cancel();
      case "stop":
        return void controller.stop(request.options);
      case "discard":
        return void ask.discard();
      case "mark":
        return void controller.mark(request.id, request.status);
      case "export":
        return void ask.exportTask();
      case "openFile":
        return controller.openFile(request.path);
      case "act":
        return void actions[request.action]();
    }
  }

  function showStatus(): void {
    view.update();
    for (const [key, value] of Object.entries(controller.contextKeys)) setKey(key, value);
    const session = controller.session;
    if (!session) return status.hide();
    status.text = `$(record) ${session.taskId}`;
    status.tooltip = `Recording for task ${session.taskId}, from ${session.baseRef.slice(0, 8)} on`;
    status.accessibilityInformation = { label: status.tooltip };
    status.show();
  }

  const keys = new Map<string, unknown>();
  /** Tell the editor what its menus ask. */
  function setKey(key: string, value: unknown): void {
    if (keys.get(key) === value) return;
    keys.set(key, value);
    void vscode.commands.executeCommand("setContext", `dataset.${key}`, value);
  }

  const commands: Record<string, () => unknown> = {
    selectTask: ask.selectTask,
    createTask: ask.createTask,
    startSession: ask.start,
    stopSession: ask.stop,
    discardSession: ask.discard,
    setApiToken: ask.setToken,
    exportTask: ask.exportTask,
    sendWaiting: () => controller.send(),
    refresh: () => controller.refresh(),
    openSettings: actions.settings,
  };
  context.subscriptions.push(
    controller,
    status,
    controller.onDidChange(showStatus),
    controller.notices.onDidRefuse(async (refusal) => {
      if (view.visible) return;
      const more = refusal.details.length ? ` ${refusal.details.join(", ")}` : "";
      const action = refusal.action;
      const titles = action ? [ACTIONS[action]] : [];
      const chosen = await vscode.window.showErrorMessage(refusal.message + more, ...titles);
      if (chosen && action) actions[action]();
    }),
    vscode.window.registerWebviewViewProvider(RecorderView.id, view),
    ...Object.entries(commands).map(([name, run]) =>
      vscode.commands.registerCommand(`dataset.${name}`, run),
    ),
  );
}
