import { ACTIONS, type Notice, type ViewState } from "../model";
import { fill, icon, make } from "./dom";
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
document.body.append(busy, notices, setup.element, recording.element, history.element);

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

window.addEventListener("message", (event: MessageEvent<ViewState>) => {
  const state = event.data;
  const words = state.known || state.busy ? state.busy : "Reading the session";
  fill(busy, words, () => (words ? [icon(ICONS.loading, "spin"), `${words}…`] : []));
  fill(notices, state.notices, () => state.notices.map(noticeOf));
  setup.update(state);
  recording.update(state);
  history.update(state);
});
post({ type: "shown" });
