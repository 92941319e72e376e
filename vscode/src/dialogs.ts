/** What the palette's commands ask a person for; the page asks through the same. */

import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";

import type { Controller } from "./controller";

const FORMATS = [
  { label: "messages", description: "chat messages with tools, for most trainers" },
  { label: "record", description: "as stored, with everything that is known of the session" },
];
const STATUSES = [
  { label: "Ready sessions", status: "ready" },
  { label: "All sessions", description: "drafts included", status: "any" },
];

type Dialogs = Record<
  "selectTask" | "createTask" | "start" | "stop" | "discard" | "setToken" | "exportTask",
  () => Promise<void>
>;

/**
 * @param controller does what is asked for
 * @param store keeps a token
 */
export function dialogs(controller: Controller, store: (token: string) => Promise<void>): Dialogs {
  const selectTask = async (): Promise<void> => {
    const create = { label: "$(add) Create a task…", id: "" };
    const tasks = async (): Promise<(typeof create)[]> => {
      await controller.refreshTasks();
      const items = controller.tasks.map((each) => ({
        label: each.name,
        description: each.id + (each.id === controller.taskId ? " · chosen" : ""),
        detail: each.description ?? "",
        id: each.id,
      }));
      return [...items, create];
    };
    const chosen = await vscode.window.showQuickPick(tasks(), {
      title: "Task that sessions are recorded for",
      matchOnDescription: true,
    });
    if (chosen === create) await createTask();
    else if (chosen) await controller.chooseTask(chosen.id);
  };

  const createTask = async (): Promise<void> => {
    const title = "Create a task";
    const id = await vscode.window.showInputBox({
      title: `${title} (1 of 3)`,
      prompt: "Its id: lower-case letters, digits and hyphens, such as rsc-convert",
      ignoreFocusOut: true,
      validateInput: (value) =>
        /^[a-z0-9][a-z0-9-]{0,63}$/.test(value)
          ? null
          : "Lower-case letters, digits and hyphens, at most 64.",
    });
    if (!id) return;
    const name = await vscode.window.showInputBox({
      title: `${title} (2 of 3)`,
      prompt: "Its name, for people",
      value: id,
      ignoreFocusOut: true,
      validateInput: (value) => (value.trim() ? null : "A task has a name."),
    });
    if (!name) return;
    const description = await vscode.window.showInputBox({
      title: `${title} (3 of 3)`,
      prompt: "What belongs to it (may stay empty)",
      ignoreFocusOut: true,
    });
    if (description === undefined) return;
    await controller.createTask({ id, name: name.trim(), description: description.trim() || null });
  };

  const start = async (): Promise<void> => {
    if (!controller.taskId) await selectTask();
    if (!controller.draft.prompt.trim()) {
      const prompt = await vscode.window.showInputBox({
        title: "Start a session",
        prompt: "What is to be done?",
        ignoreFocusOut: true,
      });
      if (!prompt) return;
      await controller.saveDraft({ ...controller.draft, prompt });
    }
    await controller.start();
  };

  const discard = async (): Promise<void> => {
    await controller.refreshSession();
    if (controller.session) {
      const sure = await vscode.window.showWarningMessage(
        "Discard the session?",
        { modal: true, detail: "What was recorded is forgotten. Your files stay as they are." },
        "Discard",
      );
      if (!sure) return;
    }
    await controller.discard();
  };

  const setToken = async (): Promise<void> => {
    const token = await vscode.window.showInputBox({
      title: "API token",
      prompt: "Kept in the editor's secret storage alone. It needs the scopes read, write and export.",
      password: true,
      ignoreFocusOut: true,
      validateInput: (value) =>
        /^[\x21-\x7e]+$/.test(value.trim()) ? null : "A token has no spaces and only ASCII characters.",
    });
    if (token) await store(token.trim());
  };

  const exportTask = async (): Promise<void> => {
    if (!controller.taskId) await selectTask();
    const taskId = controller.taskId;
    if (!taskId) return;
    const which = await vscode.window.showQuickPick(STATUSES, { title: `Export ${taskId}: which` });
    const format = which && (await vscode.window.showQuickPick(FORMATS, { title: "In which form" }));
    if (!which || !format) return;
    const file = await vscode.window.showSaveDialog({
      title: `Export ${taskId}`,
      defaultUri: vscode.Uri.file(join(homedir(), `${taskId}.jsonl`)),
      filters: { "JSON lines": ["jsonl"] },
    });
    if (file) await controller.export(file.fsPath, which.status, format.label);
  };

  const stop = (): Promise<void> => controller.stop({ summary: "", ready: false, acceptSkipped: false });
  return { selectTask, createTask, start, stop, discard, setToken, exportTask };
}
