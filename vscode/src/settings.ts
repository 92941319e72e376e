import * as vscode from "vscode";

export interface Settings {
  apiBaseUrl: string;
  neverContents: boolean;
  ignore: string[];
  filters: string[];
  timeLimit: number;
  templates: { name: string; text: string }[];
  recorderPath: string;
}

/** Return the settings that hold for a folder. */
export function settingsOf(folder?: vscode.Uri): Settings {
  const section = vscode.workspace.getConfiguration("dataset", folder);
  const templates = section.get<Record<string, string>>("systemPrompts", {});
  return {
    apiBaseUrl: section.get("apiBaseUrl", "").trim(),
    neverContents: isOnAnywhere(section, "neverUploadFileContents"),
    ignore: texts(section.get("ignore")),
    filters: texts(section.get("commandFilters")),
    timeLimit: section.get("timeLimitSeconds", 0),
    templates: Object.entries(templates).map(([name, text]) => ({ name, text: String(text) })),
    recorderPath: section.get("recorderPath", "").trim(),
  };
}

/** A repository's own settings must not switch off what its user switched on. */
function isOnAnywhere(section: vscode.WorkspaceConfiguration, name: string): boolean {
  const levels = section.inspect<boolean>(name);
  return [levels?.globalValue, levels?.workspaceValue, levels?.workspaceFolderValue].includes(true);
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string" && each !== "") : [];
}
