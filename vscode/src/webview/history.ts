import type { Upload, ViewState } from "../model";
import { allow, fill, icon, make } from "./dom";
import { post } from "./host";
import { ICONS } from "./icons";
import { counted, moment } from "./words";

/** Records that wait, and the uploads of the chosen task. */
export class History {
  private readonly waiting = make("div", { class: "waiting" });
  private readonly rows = make("ul", { class: "rows", "aria-label": "Uploads" });
  private readonly exporting = make(
    "button",
    {
      class: "plain",
      title: "Export this task's JSONL",
      "aria-label": "Export this task's JSONL",
      click: () => post({ type: "export" }),
    },
    icon(ICONS.download),
  );
  readonly element = make(
    "section",
    { "aria-label": "Uploads", tabindex: "-1" },
    this.waiting,
    make("div", { class: "heading" }, make("h2", {}, "Uploads"), this.exporting),
    this.rows,
  );

  update(state: ViewState): void {
    const { waiting, uploads } = state;
    this.element.hidden = !state.known;
    this.waiting.hidden = !waiting;
    fill(this.waiting, [waiting, state.busy], () => [
      make("span", {}, `${counted(waiting, "record")} wait${waiting > 1 ? "" : "s"} to be sent.`),
      make(
        "button",
        {
          class: "secondary",
          "aria-disabled": String(state.busy !== ""),
          "data-key": "send",
          click: () => post({ type: "act", action: "send" }),
        },
        "Send now",
      ),
    ]);
    allow(this.exporting, state.taskId !== null && state.busy === "");
    const today = new Date().toDateString();
    fill(this.rows, [uploads, state.busy, today], () =>
      uploads.length
        ? uploads.map((each) => uploadRow(each, state.busy !== ""))
        : [make("li", { class: "hint" }, "No record of this machine was sent yet.")],
    );
  }
}

function uploadRow(upload: Upload, busy: boolean): HTMLElement {
  const isReady = upload.status === "ready";
  const lacks = isReady ? "" : upload.notReady.join("; ");
  const status = upload.isSent ? upload.status : "waits";
  const mark = make(
    "button",
    {
      class: "link",
      "aria-disabled": String(busy || lacks !== ""),
      "data-key": upload.sessionId,
      title: isReady ? "Make it a draft again" : lacks || "It may train a model",
      click: () =>
        post({ type: "mark", id: upload.sessionId, status: isReady ? "draft" : "ready" }),
    },
    isReady ? "Make draft" : "Mark ready",
  );
  return make(
    "li",
    { class: "upload" },
    make("span", { class: `badge ${status}` }, status),
    make("span", { class: "name" }, upload.taskId),
    upload.isSent ? mark : null,
    make("span", { class: "hint line" }, `${upload.repoName} · ${moment(upload.stoppedAt)}`),
    lacks && upload.isSent ? make("span", { class: "hint line" }, `Not ready: ${lacks}`) : null,
  );
}
