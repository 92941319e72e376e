import { ACTIONS, type Notice, type ViewState } from "../model";
import { fill, focused, icon, make } from "./dom";
import { History } from "./history";
import { post } from "./host";
import { ICONS } from "./icons";
import { Recording } from "./recording";
import { Setup } from "./setup";

const setup = new Setup();
const recording = new Recording();
const history = new History();
const notices = make("div", { class: "notices", role: "status", "aria-live": "polite" });
const busy = make("div", { class: "busy", role: "status", "aria-live": "polite" });
document.body.append(
  make("main", {}, busy, notices, setup.element, recording.element, history.element),
);

function noticeOf(notice: Notice): HTMLElement {
  const action = notice.action;
  const button =
    action &&
    make("button", { class: "secondary", click: () => post({ type: "act", action }) }, ACTIONS[action]);
  const details = notice.details.length
    ? make("ul", {}, ...notice.details.map((each) => make("li", {}, each)))
    : null;
  return make(
    "div",
    { class: `notice ${notice.level}` },
    icon(ICONS[notice.level]),
    make("div", {}, make("p", {}, notice.text), details, button ?? null),
  );
}

/** Where what had the focus is gone, the focus goes to what stands in its place. */
function keepFocus(update: () => void): void {
  const before = focused();
  const part = before?.closest("section") ?? null;
  update();
  if (!before || focused()?.checkVisibility()) return;
  const parts = [part, recording.element, setup.element, history.element];
  parts.find((each) => each?.checkVisibility())?.focus();
}

function update(state: ViewState): void {
  const words = state.known || state.busy ? state.busy : "Reading the session";
  fill(busy, words, () => (words ? [icon(ICONS.loading, "spin"), `${words}…`] : []));
  fill(notices, state.notices, () => state.notices.map(noticeOf));
  setup.update(state);
  recording.update(state);
  history.update(state);
}

window.addEventListener("message", (event: MessageEvent<ViewState>) =>
  keepFocus(() => update(event.data)),
);
// Without a session nothing watches the files: whoever turns to the page sees how they are now.
window.addEventListener("focus", () => post({ type: "focused" }));
post({ type: "shown" });
