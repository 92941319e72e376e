// A session's page: loads the transcript's parts as they are scrolled to, takes in what is new while
// the session runs, and goes by keys from turn to turn (n, p) and from evidence to evidence (e).
// Without it, the links do the same.
"use strict";

const transcript = document.querySelector(".transcript");
const beside = document.querySelector(".beside");

async function load(link) {
  if (link.dataset.loading) return;
  link.dataset.loading = "1";
  const place = link.closest(".more");
  const answer = await fetch(link.dataset.fragment).catch(() => null);
  if (!answer?.ok) {
    delete link.dataset.loading;
    return;
  }
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  place.replaceWith(holder.content);
  watch();
}

const watcher = new IntersectionObserver(
  (seen) => seen.filter((one) => one.isIntersecting).forEach((one) => load(one.target)),
  { rootMargin: "1500px" },
);

function watch() {
  transcript.querySelectorAll("a[data-fragment]").forEach((link) => watcher.observe(link));
}

// What is new comes below what is there; what somebody unfolded or marked stays as it is.
function takeIn(old, fresh) {
  for (const [place, now] of [...fresh.children].entries()) {
    const was = old.children[place];
    if (!was) old.append(now);
    else if (was.textContent !== now.textContent) {
      if (was.matches("section") && now.matches("section")) {
        takeIn(was, now);
        continue;
      }
      if (was.matches("details") && now.matches("details")) now.open = was.open;
      was.replaceWith(now);
    }
  }
}

async function grow() {
  const last = [...transcript.querySelectorAll("template[data-part]")].at(-1);
  const answer = await fetch(last.dataset.part).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const name of ["[data-reading]", ".session-head", ".panel"]) {
    const [was, now] = [document.querySelector(name), page.querySelector(name)];
    if (was && now && !was.contains(document.activeElement)) was.replaceWith(now);
  }
  const isWhole = !transcript.querySelector("a[data-fragment]");
  const fresh = page.querySelector(".transcript");
  if (isWhole && fresh) {
    fresh.querySelectorAll(":scope > .earlier, template").forEach((each) => each.remove());
    const shown = document.createElement("div");
    while (last.nextSibling) shown.append(last.nextSibling);
    takeIn(shown, fresh);
    transcript.append(...shown.childNodes);
  }
  begin();
  watch();
}

document.addEventListener("grown", grow);

function show(element) {
  for (let fold = element; fold; fold = fold.parentElement.closest("details")) {
    if (fold.matches("details")) fold.open = true;
  }
  element.scrollIntoView({ block: "center" });
}

// An address with a turn that is in another part: ask for the page with that part.
function follow() {
  const anchor = decodeURIComponent(location.hash.slice(1));
  if (!anchor) return;
  const element = document.getElementById(anchor);
  if (element) {
    if (!element.matches("section")) show(element);
  } else if (/^(turn|mark)-\d/.test(anchor) && !location.search.includes(`at=${anchor}`)) {
    const wanted = new URL(location);
    wanted.searchParams.delete("part");
    wanted.searchParams.set("at", anchor);
    location.replace(wanted);
  }
}

// Links to what is loaded by now need no new page.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href*='#']");
  if (!link || event.ctrlKey || event.metaKey) return;
  const target = new URL(link.getAttribute("href"), location.href);
  if (target.pathname !== location.pathname) return;
  const element = document.getElementById(decodeURIComponent(target.hash.slice(1)));
  if (!element) return;
  event.preventDefault();
  history.pushState(null, "", target.hash);
  document.querySelectorAll(".at").forEach((one) => one.classList.remove("at"));
  if (beside?.contains(element)) beside.open = true;
  element.classList.add("at");
  if (element.matches("section")) element.scrollIntoView();
  else show(element);
});

function step(selector, by, margin) {
  const all = [...transcript.querySelectorAll(selector)];
  const at = all.findIndex((one) => one.classList.contains("now"));
  const seen = at >= 0 && Math.abs(all[at].getBoundingClientRect().top - margin) < innerHeight;
  let next = at + by;
  if (!seen) {
    next = all.findIndex((one) => one.getBoundingClientRect().top > margin + 2);
    if (by < 0) next = (next < 0 ? all.length : next) - 1;
    if (next < 0) next = all.length;
  }
  all[at]?.classList.remove("now");
  return all[next];
}

function goTurn(by) {
  const next = step("section.turn[id]", by, 0);
  if (next) {
    next.classList.add("now");
    next.scrollIntoView();
  } else if (by > 0) transcript.querySelector("a[data-fragment]")?.scrollIntoView();
}

// Marks are numbered as they follow in the transcript, whatever parts of it are loaded.
function goEvidence() {
  const marks = [...transcript.querySelectorAll("[id^='mark-']")];
  const below = marks.find((one) => one.getBoundingClientRect().top > 0) ?? marks[0];
  const now = marks.find((one) => one.classList.contains("now"))?.id ?? location.hash.slice(1);
  const number = now.startsWith("mark-") ? Number(now.slice(5)) + 1 : Number(below?.id.slice(5) ?? 1);
  const next = document.getElementById(`mark-${number}`);
  marks.forEach((one) => one.classList.remove("now", "at"));
  if (next) {
    next.classList.add("now", "at");
    show(next);
  } else beside?.querySelector(`a[href$="#mark-${number}"]`)?.click();
}

function foldAll() {
  const folds = [...transcript.querySelectorAll("details.call, details.thinking, details.agent")];
  const open = folds.some((fold) => !fold.open);
  folds.forEach((fold) => (fold.open = open));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (event.key === "n") goTurn(1);
  else if (event.key === "p") goTurn(-1);
  else if (event.key === "e") goEvidence();
  else if (event.key === "o") foldAll();
});

if (beside && matchMedia("(max-width: 62rem)").matches) beside.open = false;
addEventListener("hashchange", follow);
watch();
follow();
