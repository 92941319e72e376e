// Keys: / searches, j and k go from row to row, enter opens one. Every page works without it.
"use strict";

const rows = () => [...document.querySelectorAll("[data-row]")];

function go(step) {
  const all = rows();
  if (!all.length) return;
  const now = all.findIndex((row) => row.classList.contains("at"));
  const next = all[Math.max(0, Math.min(all.length - 1, now + step))];
  all[now]?.classList.remove("at");
  next.classList.add("at");
  next.querySelector("a")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "/") {
    event.preventDefault();
    document.querySelector('[data-key="/"]')?.focus();
  } else if (event.key === "j") go(1);
  else if (event.key === "k") go(-1);
});
