// Keys of the label bar: g complete, b incomplete, u unsure, 1 to 4 a verdict, m note, l another
// label; s skips.
"use strict";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  const control = document.querySelector(`[data-label-key="${CSS.escape(event.key)}"]`);
  if (!control) return;
  event.preventDefault();
  control.click();
  if (control.matches("summary") && control.parentElement.open)
    control.parentElement.querySelector("input, textarea").select();
});

// Where the reader stays on the page, only the labels are loaded again: the bar, and those beside
// the scores.
document.addEventListener("submit", async (event) => {
  const bar = event.target.closest("[data-labels]");
  const form = new FormData(event.target, event.submitter);
  if (!bar) return;
  event.preventDefault();
  const answer = await fetch(event.target.action, {
    method: "POST",
    body: new URLSearchParams(form),
    headers: { "X-Part": "labels" },
  });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector(answer.ok ? "[data-labels]" : "main");
  if (answer.ok) {
    document.querySelector("[data-said]")?.replaceWith(page.querySelector("[data-said]"));
    bar.replaceWith(fresh);
  }
  else bar.prepend(Object.assign(document.createElement("p"), { className: "notice bad", role: "alert", textContent: fresh?.innerText ?? answer.statusText }));
});
