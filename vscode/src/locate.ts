import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";

import { Refusal } from "./refusal";

const NAME = process.platform === "win32" ? "debrief.exe" : "debrief";
const SCRIPTS = process.platform === "win32" ? "Scripts" : "bin";

/**
 * Return the program `debrief`: the setting's, else that of a folder's `.venv`, else `PATH`'s.
 *
 * @param setting the person's own choice; empty for none
 * @param folders of the workspace, the chosen one first
 * @param path the environment's `PATH`
 */
export async function locate(setting: string, folders: string[], path: string): Promise<string> {
  if (setting) {
    if (isAbsolute(setting) && (await isProgram(setting))) return setting;
    throw new Refusal(
      "recorder.missing",
      `The setting dataset.recorderPath names no program: ${setting}. Give the whole path of debrief, or leave it empty.`,
      { action: "settings" },
    );
  }
  const places = folders.map((folder) => join(folder, ".venv", SCRIPTS));
  places.push(...path.split(delimiter).filter(isAbsolute));
  for (const place of places) {
    if (await isProgram(join(place, NAME))) return join(place, NAME);
  }
  throw new Refusal(
    "recorder.missing",
    "The recorder is not installed: no program debrief in this folder's .venv, nor on PATH. Install Debrief there with pip, from its checkout or its wheel, or name the program in the setting dataset.recorderPath.",
    { action: "settings" },
  );
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
