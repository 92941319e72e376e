import type { Draft, ViewState } from "../model";
import { allow, field, fill, icon, make } from "./dom";
import { post, settled } from "./host";
import { ICONS } from "./icons";
import { counted } from "./words";

const CUSTOM = "\u0000own words";

/** The form that a session is started with. */
export class Setup {
  private readonly folder = make("select", {
    change: () => post({ type: "chooseFolder", path: this.folder.value }),
  });
  private readonly folderField = field("Folder", this.folder);
  private readonly task = make("select", {
    change: () => post({ type: "chooseTask", id: this.task.value }),
  });
  private readonly about = make("p", { class: "hint" });
  private readonly template = make("select", { change: () => this.takeTemplate() });
  private readonly system = make("textarea", {
    rows: "4",
    "aria-label": "Words of the system prompt",
    input: () => this.edited(),
  });
  private readonly prompt = make("textarea", {
    rows: "5",
    placeholder: "What is to be done, as you would ask an agent for it",
    input: () => this.edited(),
    keydown: (event) => {
      const { key, ctrlKey, metaKey } = event as KeyboardEvent;
      if (key === "Enter" && (ctrlKey || metaKey)) this.start();
    },
  });
  private readonly button = make(
    "button",
    { class: "primary wide", click: () => this.start() },
    icon(ICONS.record),
    "Start session",
  );
  private readonly place = make("div", { class: "place" });
  private readonly remark = make("p", { class: "hint" });
  private templates: ViewState["templates"] = [];
  private save = settled(300, () => post({ type: "draft", draft: this.draft }));
  private hasDraft = false;
  readonly element = make(
    "section",
    { "aria-label": "New session", tabindex: "-1" },
    this.folderField,
    field("Task", make("div", { class: "beside" })),
    this.about,
    field("System prompt", this.template),
    this.system,
    field("Prompt", this.prompt),
    this.place,
    this.button,
    this.remark,
  );

  constructor() {
    const row = this.element.querySelector(".beside") as HTMLElement;
    const label = row.previousElementSibling as HTMLLabelElement;
    row.removeAttribute("id");
    this.task.id = "task";
    label.htmlFor = "task";
    const add = make(
      "button",
      { class: "plain", title: "Create a task", "aria-label": "Create a task" },
      icon(ICONS.add),
    );
    add.addEventListener("click", () => post({ type: "createTask" }));
    row.append(this.task, add);
  }

  update(state: ViewState): void {
    this.element.hidden = state.session !== null || !state.known;
    this.folderField.hidden = state.folders.length < 2;
    const none = state.folder ? [] : [option("", "Choose a folder…", true)];
    fill(this.folder, [state.folders, !state.folder], () => [
      ...none,
      ...state.folders.map((each) => option(each.path, each.name)),
    ]);
    this.folder.value = state.folder ?? "";
    this.updateTask(state);
    this.templates = state.templates;
    fill(this.template, state.templates, () => [
      option("", "None"),
      ...state.templates.map((each) => option(each.name, each.name)),
      option(CUSTOM, "Own words"),
    ]);
    if (!this.hasDraft || state.draft.prompt === "") this.takeDraft(state.draft);
    this.updatePlace(state.place);
    allow(this.button, state.busy === "" && state.folder !== null);
    fill(this.remark, state.neverContents, () =>
      state.neverContents
        ? [icon(ICONS.lock), "Contents of files are never recorded (your settings)."]
        : [],
    );
  }

  private updatePlace(place: ViewState["place"]): void {
    this.place.hidden = place === null;
    fill(this.place, place && [place.repoName, place.branch, place.head, place.notClean], () => {
      if (!place) return [];
      const dirty = place.notClean;
      const where = `${place.repoName} · ${place.branch ?? "no branch"} · ${place.head.slice(0, 8)}`;
      return [
        make("p", { class: "hint" }, icon(ICONS.gitCommit), where),
        dirty.length
          ? make(
              "details",
              { class: "dirty" },
              make("summary", { "data-key": "dirty" }, icon(ICONS.warning), `Not clean: ${counted(dirty.length, "file")}`),
              make("p", { class: "hint" }, "A session begins at a commit: commit or stash these."),
              make("ul", {}, ...dirty.map((each) => make("li", {}, each))),
            )
          : make("p", { class: "hint clean" }, icon(ICONS.check), "Clean: a session can start."),
      ];
    });
  }

  private updateTask(state: ViewState): void {
    const chosen = state.tasks.find((each) => each.id === state.taskId);
    fill(this.task, [state.tasks, !chosen], () => [
      ...(chosen ? [] : [option("", state.tasks.length ? "Choose a task…" : "No task yet", true)]),
      ...state.tasks.map((each) => option(each.id, `${each.name} (${each.id})`)),
    ]);
    this.task.value = chosen?.id ?? "";
    this.about.textContent = chosen?.description ?? "";
    this.about.hidden = !chosen?.description;
  }

  private get draft(): Draft {
    return {
      template: this.template.value,
      system: this.system.value,
      prompt: this.prompt.value,
    };
  }

  private takeDraft(draft: Draft): void {
    if (document.activeElement === this.prompt || document.activeElement === this.system) return;
    this.hasDraft = true;
    this.template.value = draft.template;
    if (this.template.selectedIndex < 0) this.template.value = draft.system ? CUSTOM : "";
    this.system.value = draft.system;
    this.prompt.value = draft.prompt;
    this.system.hidden = this.template.value === "";
  }

  private takeTemplate(): void {
    const chosen = this.templates.find((each) => each.name === this.template.value);
    if (this.template.value !== CUSTOM) this.system.value = chosen?.text ?? "";
    this.system.hidden = this.template.value === "";
    this.save();
  }

  private edited(): void {
    const chosen = this.templates.find((each) => each.name === this.template.value);
    if (this.system.value !== (chosen?.text ?? "")) this.template.value = CUSTOM;
    this.save();
  }

  private start(): void {
    if (this.button.ariaDisabled === "true") return;
    post({ type: "draft", draft: this.draft });
    post({ type: "start" });
  }
}

function option(value: string, text: string, disabled = false): HTMLOptionElement {
  return make("option", { value, disabled }, text);
}
