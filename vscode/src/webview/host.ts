import type { Request } from "../model";

interface Kept {
  filter: string;
  packages: string;
  summary: string;
  ready: boolean;
}

declare function acquireVsCodeApi(): {
  postMessage(message: Request): void;
  getState(): Partial<Kept> | undefined;
  setState(state: Partial<Kept>): void;
};

const host = acquireVsCodeApi();

/** Ask the extension for something. */
export function post(request: Request): void {
  host.postMessage(request);
}

/** What was typed and is nobody else's to know; it outlives the page. */
export function kept(): Partial<Kept> {
  return host.getState() ?? {};
}

export function keep(values: Partial<Kept>): void {
  host.setState({ ...kept(), ...values });
}

/** Return a function that waits until it was not called for a while. */
export function settled(milliseconds: number, run: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, milliseconds);
  };
}
