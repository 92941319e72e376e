/** Messages of the page are read as strictly as a stranger's: what does not fit is dropped. */

import { ACTIONS, type Request } from "./model";

type Check = (value: unknown) => boolean;

const LONGEST = 1_000_000;
const text: Check = (value) => typeof value === "string" && value.length <= LONGEST;
const texts: Check = (value) => Array.isArray(value) && value.length <= 100 && value.every(text);
const flag: Check = (value) => typeof value === "boolean";
const seconds: Check = (value) => typeof value === "number" && value >= 0 && value <= 86_400;
const status: Check = (value) => value === "draft" || value === "ready";
const action: Check = (value) => typeof value === "string" && Object.hasOwn(ACTIONS, value);

function shape(fields: Record<string, Check>): Check {
  const names = Object.keys(fields).sort().join();
  return (value) => {
    if (typeof value !== "object" || value === null) return false;
    const given = value as Record<string, unknown>;
    if (Object.keys(given).sort().join() !== names) return false;
    return Object.entries(fields).every(([name, check]) => check(given[name]));
  };
}

const values: Check = (value) =>
  typeof value === "object" &&
  value !== null &&
  Object.keys(value).length <= 20 &&
  Object.keys(value).every((name) => /^[a-z][a-z0-9_-]{0,40}$/i.test(name)) &&
  Object.values(value).every(text);

const REQUESTS: Record<Request["type"], Record<string, Check>> = {
  shown: {},
  focused: {},
  chooseFolder: { path: text },
  chooseTask: { id: text },
  createTask: {},
  draft: { draft: shape({ template: text, system: text, prompt: text }) },
  start: {},
  inputs: { inputs: values },
  run: { argv: texts, timeLimit: seconds },
  agree: { digest: text },
  cancel: {},
  stop: { options: shape({ summary: text, ready: flag, acceptSkipped: flag }) },
  discard: {},
  mark: { id: text, status },
  export: {},
  openFile: { path: text },
  act: { action },
};

/** Return a message as the request that it is, or nothing when it is none. */
export function requestOf(message: unknown): Request | undefined {
  const type = (message as { type?: unknown } | null)?.type;
  if (typeof type !== "string" || !Object.hasOwn(REQUESTS, type)) return undefined;
  const fields = { type: (value: unknown) => value === type, ...REQUESTS[type as Request["type"]] };
  return shape(fields)(message) ? (message as Request) : undefined;
}
