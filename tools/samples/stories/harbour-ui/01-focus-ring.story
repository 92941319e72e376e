---
title: Visible focus on booking cards
tool: claude-code
repository: harbour-ui
prompts: v1
at: 2026-10-06 10:30:18
version: 2.1.226
---
==> user
cards should show focus when you tab to them
==> grep card :: src/
==> read src/planner/BookingCard.tsx
==> read src/styles/planner.css
==> say
The card is a `div` without `tabIndex`, and the style removes the outline. I'll make it focusable and give it a ring.
==> edit src/planner/BookingCard.tsx
-    <div className={selected ? "card card-selected" : "card"} onClick={onSelect}>
+    <div
+      className={selected ? "card card-selected" : "card"}
+      tabIndex={0}
+      onClick={onSelect}
+    >
==> edit src/styles/planner.css
   background: var(--card);
-  outline: none;
 }
+
+.card:focus-visible {
+  outline: 2px solid var(--focus);
+  outline-offset: 1px;
+}
==> run npx eslint src
==> say
Cards can be reached with Tab and show a ring.
==> user
enter doesn't select it though. a div is wrong here anyway, use a button
==> edit src/planner/BookingCard.tsx
-    <div
+    <button
+      type="button"
       className={selected ? "card card-selected" : "card"}
-      tabIndex={0}
+      aria-pressed={selected}
       onClick={onSelect}
     >
==> run exit=1 npx tsc -b
src/planner/BookingCard.tsx(24,5): error TS17002: Expected corresponding JSX closing tag for 'button'.
==> edit src/planner/BookingCard.tsx
       </small>
-    </div>
+    </button>
==> run npx tsc -b
==> edit src/styles/planner.css
 .card {
   padding: 6px 10px;
+  border: 0;
+  font: inherit;
+  text-align: left;
   background: var(--card);
==> tests npx vitest run
ok src/planner/overlap.test.ts 2
==> say
It's a real button now, so Enter and Space select, and `aria-pressed` says which one is selected. tsc is clean, vitest: 2 passed.
==> user
looks good in the browser
==> say
Thanks.
