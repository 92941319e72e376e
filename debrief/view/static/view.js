// Keys: / searches, j and k go from row to row, enter opens one; a page of a lake that is still
// being read follows it. Every page works without it.
"use strict";

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

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
  } else if (event.key === "/") {
    event.preventDefault();
    document.querySelector('[data-key="/"]')?.select();
  } else if (event.key === "j") go(1);
  else if (event.key === "k") go(-1);
});

// A choice shows at once, and an address has only what was chosen.
for (const form of document.querySelectorAll("form[data-clean]")) {
  form.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) form.requestSubmit();
  });
  form.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
  });
}

// What is read later is shown later, unless somebody types or has scrolled.
if (document.querySelector("[data-behind]")) {
  setTimeout(() => {
    const types = document.activeElement?.matches("input, textarea, select");
    if (!types && !window.scrollY) location.reload();
  }, 1500);
}
