import * as vscode from "vscode";

import type { Notice } from "./model";
import { Refusal } from "./refusal";

/** Where a notice comes from, the most important first; each has one at a time. */
const PLACES = ["folder", "recorder", "action", "api"] as const;
type Place = (typeof PLACES)[number];

/** What a person is told beside the session: refusals and what became of a request. */
export class Notices implements vscode.Disposable {
  private readonly told = new Map<Place, Notice>();
  private readonly refused = new vscode.EventEmitter<Refusal>();
  /** A person's own request was refused. */
  readonly onDidRefuse = this.refused.event;

  dispose(): void {
    this.refused.dispose();
  }

  get list(): Notice[] {
    return PLACES.flatMap((place) => this.told.get(place) ?? []);
  }

  set(place: Place, notice: Notice | undefined): void {
    if (notice) this.told.set(place, notice);
    else this.told.delete(place);
  }

  /** Do some work; its refusal becomes the place's notice, and its success takes an old one away. */
  async during(place: Place, work: () => Promise<void>): Promise<void> {
    const before = this.told.get(place);
    try {
      await work();
      if (this.told.get(place) === before) this.told.delete(place);
    } catch (error) {
      const unexpected = `The extension failed: ${String(error)}`;
      const refusal = error instanceof Refusal ? error : new Refusal("unexpected", unexpected);
      this.told.set(place, refusal.notice);
      if (place === "action") this.refused.fire(refusal);
    }
  }
}
