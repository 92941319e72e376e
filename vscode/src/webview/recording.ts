import type { FileChange, Session, ViewState } from "../model";
import { Commands } from "./commands";
import { allow, field, fill, icon, make } from "./dom";
import { keep, kept, post } from "./host";
import { ICONS } from "./icons";
import { elapsed, shortIds } from "./words";

const SIGNS = { create: "A", update: "M", delete: "D" } as const;
const KINDS = { create: "created", update: "changed", delete: "deleted" } as const;

/** The session under way: where it began, what changed, what ran, and its end. */
export class Recording {
  private readonly clock = make("span", { class: "clock", role: "timer", "aria-live": "off" });
  private readonly facts = make("dl", { class: "facts" });
  private readonly remarks = make("ul", { class: "remarks", "aria-label": "Warnings" });
  private readonly filesTitle = make("h2");
  private readonly files = make("ul", { class: "rows", "aria-label": "Changed files" });
  private readonly commands = new Commands();
  private readonly lacks = make("ul", { class: "remarks", "aria-label": "Not ready for training" });
  private readonly summary = make("textarea", {
    rows: "2",
    placeholder: "Made from the facts, if you say nothing",
    input: () => keep({ summary: this.summary.value }),
  });
  private readonly ready = make("input", {
    type: "checkbox",
    id: "ready",
    change: () => keep({ ready: this.ready.checked }),
  });
  private readonly accept = make("input", { type: "checkbox", id: "accept" });
  private readonly accepting = make(
    "div",
    { class: "check" },
    this.accept,
    make("label", { for: "accept" }, "Leave out what cannot be recorded"),
  );
  private readonly stop = make(
    "button",
    { class: "primary", click: () => this.stopped() },
    icon(ICONS.cloudUpload),
    "Stop and upload",
  );
  private readonly discard = make(
    "button",
    { class: "secondary", click: () => post({ type: "discard" }) },
    icon(ICONS.trash),
    "Discard",
  );
  readonly element = make(
    "section",
    { "aria-label": "Session under way", tabindex: "-1" },
    make(
      "div",
      { class: "recording" },
      icon(ICONS.record, "pulse"),
      make("strong", {}, "Recording"),
      this.clock,
    ),
    this.facts,
    this.remarks,
    this.filesTitle,
    this.files,
    this.commands.element,
    make("h2", {}, "End"),
    field("Closing words", this.summary),
    make(
      "div",
      { class: "check" },
      this.ready,
      make("label", { for: "ready" }, "Mark ready for training"),
    ),
    this.accepting,
    this.lacks,
    make("div", { class: "beside end" }, this.stop, this.discard),
  );
  private session: Session | null = null;
  constructor() {
    const before = kept();
    this.summary.value = before.summary ?? "";
    this.ready.checked = before.ready ?? false;
    setInterval(() => this.tick(), 1000);
  }

  update(state: ViewState): void {
    const session = state.session;
    this.element.hidden = session === null;
    if (this.session && session?.id !== this.session.id) this.forget();
    this.session = session;
    if (!session) return;
    this.tick();
    this.updateFacts(session, state);
    this.updateFiles(session);
    this.commands.update(session, state);
    const { notReady } = session;
    this.accepting.hidden = !session.skipped.length;
    fill(this.lacks, notReady, () => notReady.map((each) => remark(`Not ready: ${each}`, "info")));
    for (const button of [this.stop, this.discard]) allow(button, state.busy === "");
  }

  private updateFacts(session: Session, state: ViewState): void {
    const task = state.tasks.find((each) => each.id === session.taskId);
    const secret = session.contents === "none";
    fill(this.facts, [session.id, task, secret], () => [
      ...fact("Task", task?.name ?? session.taskId),
      ...fact("Baseline", `${session.baseRef.slice(0, 8)} on ${session.branch ?? "no branch"}`),
      ...fact("Prompt", session.prompt),
      ...(secret ? fact("Contents", "never recorded") : []),
    ]);
    const { warnings, stopped } = session;
    fill(this.remarks, [warnings, stopped], () => [
      ...(stopped
        ? [remark("Its record is made, and was not sent. Stop sends it as it is.", "warning")]
        : []),
      ...warnings.map((each) => remark(each, "warning")),
    ]);
  }

  private updateFiles(session: Session): void {
    const { changes, skipped } = session;
    this.filesTitle.textContent = `Changes (${changes.length})`;
    fill(this.files, [changes, skipped], () => [
      ...changes.map(fileRow),
      ...skipped.map((each) =>
        make("li", { class: "hint" }, `Left out: ${each.path}: ${each.reason}`),
      ),
      changes.length + skipped.length ? null : make("li", { class: "hint" }, "Nothing changed yet."),
    ]);
  }

  private tick(): void {
    if (this.session) this.clock.textContent = elapsed(this.session.startedAt, Date.now());
  }

  private stopped(): void {
    const { summary, ready, accept } = this;
    const options = { summary: summary.value, ready: ready.checked, acceptSkipped: accept.checked };
    post({ type: "stop", options });
  }

  /** The next session has closing words of its own. */
  private forget(): void {
    this.summary.value = "";
    this.accept.checked = false;
    keep({ summary: "" });
  }
}

function fact(name: string, value: string): HTMLElement[] {
  return [make("dt", {}, name), make("dd", { title: value }, value)];
}

function remark(text: string, level: "warning" | "info" | "error"): HTMLElement {
  return make("li", { class: level }, icon(ICONS[level]), make("span", {}, shortIds(text)));
}

function fileRow(change: FileChange): HTMLElement {
  const slash = change.path.lastIndexOf("/") + 1;
  const row = make(
    change.kind === "delete" ? "span" : "button",
    { class: "row", title: `${change.path}, ${KINDS[change.kind]}`, "data-key": change.path },
    make("span", { class: "name" }, change.path.slice(slash)),
    make("span", { class: "where" }, change.path.slice(0, Math.max(0, slash - 1))),
    make("span", { class: "added" }, change.added ? `+${change.added}` : ""),
    make("span", { class: "removed" }, change.removed ? `−${change.removed}` : ""),
    make("span", { class: `sign ${change.kind}`, "aria-label": KINDS[change.kind] }, SIGNS[change.kind]),
  );
  if (change.kind !== "delete") {
    row.addEventListener("click", () => post({ type: "openFile", path: change.path }));
  }
  return make("li", {}, row);
}
