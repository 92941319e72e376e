---
title: List of shortcuts
tool: droid
repository: harbour-ui
prompts: v3
at: 2026-10-27 13:33:26
---
==> user
add a "?" shortcut that shows all keyboard shortcuts of the planner
==> say
Before I begin: I take it that `?` opens a dialog with the keys that `useRovingFocus` knows, that Escape closes it, and that nothing else changes. Tell me if you meant another place for it.
==> read src/planner/useRovingFocus.ts
==> +read src/planner/PlannerGrid.tsx
==> write src/planner/ShortcutsHelp.tsx
import { useEffect, useRef, useState } from "react";

const SHORTCUTS: [string, string][] = [
  ["← →", "previous or next booking of the berth"],
  ["↑ ↓", "berth above or below"],
  ["Home End", "first or last booking of the berth"],
  ["?", "this list"],
];

export function ShortcutsHelp() {
  const [open, setOpen] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => event.key === "?" && setOpen(true);
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  useEffect(() => {
    if (open) dialog.current?.showModal();
  }, [open]);
  return (
    <dialog ref={dialog} aria-label="Shortcuts" onClose={() => setOpen(false)}>
      <dl>
        {SHORTCUTS.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>{keys}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}
==> edit src/planner/PlannerGrid.tsx
       <LiveRegion />
+      <ShortcutsHelp />
==> edit src/planner/PlannerGrid.tsx
 import { LiveRegion } from "./LiveRegion";
+import { ShortcutsHelp } from "./ShortcutsHelp";
==> run npx tsc -b
==> tests npx vitest run
ok src/planner/describeChange.test.ts 3
ok src/planner/overlap.test.ts 2
ok src/planner/useRovingFocus.test.ts 6
==> say
`?` opens the list, Escape closes it. vitest: "11 passed"; tsc: no output.
==> user
it also opens when I type a ? in the search field. shouldn't
==> edit src/planner/ShortcutsHelp.tsx
-    const onKey = (event: KeyboardEvent) => event.key === "?" && setOpen(true);
+    const onKey = (event: KeyboardEvent) => {
+      const typing = (event.target as HTMLElement).closest("input, textarea, [contenteditable]");
+      if (event.key === "?" && !typing) setOpen(true);
+    };
==> run npx tsc -b
==> tests npx vitest run
ok src/planner/describeChange.test.ts 3
ok src/planner/overlap.test.ts 2
ok src/planner/useRovingFocus.test.ts 6
==> say
Typing in a field no longer opens it. "11 passed".
==> user
👍
==> say
Thanks.
