// What every page does: keys, copying, forms that keep their address short, and pages that follow
// the lake. Every page works without it.
"use strict";

const typing = "input, textarea, select, [contenteditable]";
const keys = document.getElementById("keys");

function go(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const now = rows.findIndex((row) => row.classList.contains("at"));
  const next = rows[Math.max(0, Math.min(rows.length - 1, now + step))];
  rows[now]?.classList.remove("at");
  next.classList.add("at");
  next.querySelector(".title, a")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

// Where the browser lets no script copy, the words are selected to be copied by hand.
async function copy(button) {
  button.dataset.label ??= button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.parentElement.querySelector("code") ?? button.parentElement);
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = button.dataset.label), 2000);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest(typing)) {
    if (event.key === "Escape") event.target.blur();
  } else if (event.key === "?") {
    if (keys.open) keys.close();
    else keys.showModal();
  } else if (keys.open) return;
  else if (event.key === "/") {
    event.preventDefault();
    document.querySelector('[data-key="/"]')?.select();
  } else if (event.key === "j") go(1);
  else if (event.key === "k") go(-1);
  else if (event.key === "c") {
    const button = document.querySelector(".at [data-copy]") ?? document.querySelector("[data-copy]");
    if (button) copy(button);
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
  if (event.target.closest("[data-keys]")) keys.showModal();
});

// A choice shows at once, and an address has only what was chosen.
document.addEventListener("change", (event) => {
  if (event.target.matches("form[data-clean] [data-submit]")) event.target.form.requestSubmit();
});
document.addEventListener("formdata", (event) => {
  if (!event.target.matches("[data-clean]")) return;
  for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
});

function begin() {
  document.querySelectorAll("[data-copy], [data-keys]").forEach((button) => (button.hidden = false));
}

// A page that lists what is in the lake is shown anew when something was read, unless somebody is
// at work on it. A session's page is told when its session went on. A page that nobody looks at does
// not follow.
const PAUSE = 1500;
const grows = document.querySelector("[data-grows]");
let source = null;
let shown = Number(document.body.dataset.changes);
let newest = shown;
let waits = null;

function isAtWork() {
  const at = document.activeElement;
  return Boolean(
    window.scrollY > 40 || keys.open || !getSelection().isCollapsed
      || (at && at !== document.body && at.closest("main, .find")),
  );
}

async function renew() {
  waits = null;
  if (newest === shown) return;
  if (isAtWork()) {
    waits = setTimeout(renew, PAUSE);
    return;
  }
  const answer = await fetch(location.href).catch(() => null);
  if (answer && !isAtWork()) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of ["[data-reading]", "main"]) {
      const fresh = page.querySelector(part);
      if (fresh) document.querySelector(part).replaceWith(fresh);
    }
    document.title = page.title;
    shown = Number(page.body.dataset.changes);
    begin();
  }
  if (newest !== shown) waits = setTimeout(renew, PAUSE);
}

function hear(event) {
  const state = JSON.parse(event.data);
  const bar = document.querySelector("[data-reading] progress");
  if (bar && state.weeks) {
    bar.max = state.weeks;
    bar.value = state.done;
    bar.nextElementSibling.textContent = `${state.done} of ${state.weeks} weeks`;
  }
  if (grows) {
    const isOver = !state.is_behind && document.querySelector("[data-behind]");
    if (state.about !== grows.dataset.about || isOver) {
      grows.dataset.about = state.about;
      document.dispatchEvent(new Event("grown"));
    }
    return;
  }
  newest = state.changes;
  if (!state.is_behind && document.querySelector("[data-behind]")) shown = -1;
  if (newest !== shown) waits ??= setTimeout(renew, shown < 0 ? 0 : PAUSE);
}

function follow() {
  if (document.hidden || !(grows || document.querySelector("[data-live]"))) {
    source?.close();
    source = null;
  } else if (!source) {
    const of = grows ? `?session=${encodeURIComponent(grows.dataset.grows)}` : "";
    source = new EventSource(`/progress${of}`);
    source.onmessage = hear;
  }
}

begin();
document.addEventListener("visibilitychange", follow);
follow();
