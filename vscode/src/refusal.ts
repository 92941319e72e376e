import type { Action, Notice } from "./model";

/** What is no failure: only not done yet, or done later. */
const LEVELS: Record<string, Notice["level"]> = {
  "api-not-set": "info",
  "token-missing": "info",
  "no-folder": "info",
  kept: "warning",
};

/** An error that a person can act on: what is wrong, and the next move. */
export class Refusal extends Error {
  readonly details: string[];
  readonly action: Action | undefined;

  /**
   * @param code names the reason, for whoever treats it in a way of its own
   * @param message what is wrong and what to do about it, in a sentence
   * @param more lines of detail, and the button that takes the next step
   */
  constructor(
    readonly code: string,
    message: string,
    more: { details?: string[]; action?: Action } = {},
  ) {
    super(message);
    this.details = more.details ?? [];
    this.action = more.action;
  }

  get notice(): Notice {
    const level = LEVELS[this.code] ?? "error";
    const action = this.action ? { action: this.action } : {};
    return { level, text: this.message, details: this.details, ...action };
  }
}
