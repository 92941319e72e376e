import type { CommandInputs, Offer, RanCommand, Session, ViewState } from "../model";
import { field, fill, icon, make } from "./dom";
import { keep, kept, post, settled } from "./host";
import { ICONS } from "./icons";
import { duration } from "./words";

/** Kinds of values of the recorder's own table; those of a repository have fields of their name. */
const PACKAGES = ["package", "name"];
const FILTER = "selector";

/** The buttons of commands, what is typed for them, and what ran. */
export class Commands {
  private readonly checks = make("div", { class: "offers", role: "group", "aria-label": "Checks" });
  private readonly others = make("div", { class: "offers", role: "group", "aria-label": "Others" });
  private readonly rules = make("div", { class: "notice info" });
  private readonly filters = make("datalist", { id: "filters" });
  private readonly filter = this.input("none", "filters");
  private readonly packages = this.input("names, with spaces between");
  private readonly limit = make("input", { type: "number", min: "1", max: "86400", placeholder: "its own" });
  private readonly own = make("div", { class: "grid" });
  private readonly problem = make("p", { class: "hint", role: "status", "aria-live": "polite" });
  private readonly ran = make("ol", { class: "rows", "aria-label": "Commands that ran" });
  readonly element = make(
    "div",
    {},
    make("h2", {}, "Commands"),
    this.rules,
    this.checks,
    this.others,
    this.problem,
    make(
      "div",
      { class: "grid" },
      field("Packages", this.packages),
      field("Filter", this.filter, this.filters),
      field("Time limit (s)", this.limit),
    ),
    this.own,
    this.ran,
  );
  private readonly ask = settled(350, () => post({ type: "inputs", inputs: this.inputs }));

  constructor() {
    const before = kept();
    this.filter.value = before.filter ?? "";
    this.packages.value = before.packages ?? "";
    if (this.filter.value || this.packages.value) this.ask();
  }

  update(session: Session, state: ViewState): void {
    this.element.hidden = session.stopped;
    if (document.activeElement !== this.limit) this.limit.value ||= state.timeLimit ? String(state.timeLimit) : "";
    fill(this.filters, state.filters, () => state.filters.map((value) => make("option", { value })));
    const isBusy = state.busy !== "" || session.commands.some((each) => each.running);
    const checks = state.offers.filter((each) => each.isCheck);
    const others = state.offers.filter((each) => !each.isCheck);
    fill(this.checks, [checks, isBusy], () => checks.map((each) => this.button(each, isBusy)));
    fill(this.others, [others, isBusy], () => others.map((each) => this.button(each, isBusy)));
    this.updateOwn(state.offers.filter((each) => each.own));
    this.updateRules(state);
    // Of a button that lacks a value, or an agreement, nothing is said: it is plain to see.
    const wrong = state.offers.find(
      (each) => each.problem && each.argv.length && !(each.own && state.rules),
    );
    this.problem.textContent = wrong ? `${wrong.argv.join(" ")}: ${wrong.problem}` : "";
    this.problem.hidden = !wrong;
    fill(this.ran, session.commands, () => session.commands.map(ranRow));
  }

  private updateRules(state: ViewState): void {
    const { rules } = state;
    this.rules.hidden = rules === null;
    fill(this.rules, rules, () =>
      rules
        ? [
            icon(ICONS.info),
            make(
              "div",
              {},
              make("p", {}, `${rules.source} adds commands. They run once you agree:`),
              make("ul", {}, ...rules.commands.map((each) => make("li", {}, each))),
              make("button", { class: "secondary", click: () => post({ type: "agree", digest: rules.digest }) }, "Agree"),
            ),
          ]
        : [],
    );
  }

  private updateOwn(offers: Offer[]): void {
    const known = [...PACKAGES, FILTER];
    const kinds = [...new Set(offers.flatMap((each) => each.kinds))].filter(
      (kind) => !known.includes(kind),
    );
    fill(this.own, kinds, () =>
      kinds.map((kind) => {
        const input = this.input("");
        input.dataset.kind = input.dataset.key = kind;
        return field(`<${kind}>`, input);
      }),
    );
  }

  private get inputs(): CommandInputs {
    const own = [...this.own.querySelectorAll("input")];
    return {
      ...Object.fromEntries(PACKAGES.map((kind) => [kind, this.packages.value])),
      [FILTER]: this.filter.value,
      ...Object.fromEntries(own.map((each) => [each.dataset.kind ?? "", each.value])),
    };
  }

  private input(placeholder: string, list = ""): HTMLInputElement {
    return make("input", {
      type: "text",
      placeholder,
      spellcheck: "false",
      ...(list ? { list } : {}),
      input: () => {
        keep({ filter: this.filter.value, packages: this.packages.value });
        this.ask();
      },
    });
  }

  private button(offer: Offer, isBusy: boolean): HTMLElement {
    const click = (): void =>
      post({ type: "run", argv: offer.argv, timeLimit: Number(this.limit.value) });
    return make(
      "button",
      {
        class: "secondary",
        "aria-disabled": String(offer.problem !== "" || isBusy),
        "data-key": offer.title,
        title: offer.problem || `${offer.argv.join(" ")}, at most ${offer.timeLimit} s`,
        click,
      },
      offer.title,
    );
  }
}

function ranRow(command: RanCommand): HTMLElement {
  const failed = command.exitCode !== 0;
  const ended = `exit code ${command.exitCode}, ${duration(command.durationMs)}`;
  const outcome = command.exitCode === null ? command.ending : ended;
  const sign = command.running
    ? icon(ICONS.loading, "spin")
    : icon(failed ? ICONS.error : ICONS.pass, failed ? "bad" : "good");
  const cancel = make(
    "button",
    {
      class: "plain",
      title: "End it",
      "aria-label": `End ${command.line}`,
      click: () => post({ type: "cancel" }),
    },
    icon(ICONS.debugStop),
  );
  const where = command.cwd === "." ? "" : ` in ${command.cwd}`;
  return make(
    "li",
    { class: "ran" },
    sign,
    make("code", { title: command.line + where }, command.line + where),
    make("span", { class: "outcome" }, command.running ? "running" : outcome),
    command.running ? cancel : null,
  );
}
