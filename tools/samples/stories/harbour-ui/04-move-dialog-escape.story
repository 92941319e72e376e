---
title: Close the move dialog with Escape
tool: claude-code
repository: harbour-ui
prompts: v1
at: 2026-10-16 14:48:09
version: 2.1.226
---
==> user
MoveDialog.tsx: Escape should close it, and focus has to go back to the card
==> read src/planner/MoveDialog.tsx
==> edit src/planner/MoveDialog.tsx
-    <div className="dialog">
+    <div
+      className="dialog"
+      role="dialog"
+      aria-label="Move booking"
+      onKeyDown={(event) => event.key === "Escape" && onClose()}
+    >
==> queue
and please use the native <dialog> element if that's simpler
==> say
The native element closes on Escape and restores focus by itself. Switching to it.
==> edit src/planner/MoveDialog.tsx
-    <div
-      className="dialog"
-      role="dialog"
-      aria-label="Move booking"
-      onKeyDown={(event) => event.key === "Escape" && onClose()}
-    >
+    <dialog ref={dialog} className="dialog" aria-label="Move booking" onClose={onClose}>
==> edit src/planner/MoveDialog.tsx
-    </div>
+    </dialog>
   );
 }
==> edit src/planner/MoveDialog.tsx
-import { useState } from "react";
+import { useEffect, useRef, useState } from "react";
==> edit src/planner/MoveDialog.tsx
   const [berthId, setBerthId] = useState(berths[0]?.id ?? "");
+  const dialog = useRef<HTMLDialogElement>(null);
+  useEffect(() => dialog.current?.showModal(), []);
   if (!selected) return null;
==> apierror 529
==> tests npx vitest run
ok src/planner/overlap.test.ts 2
ok src/planner/useRovingFocus.test.ts 6
==> say
`MoveDialog` is a native dialog now: Escape closes it and the browser gives the focus back to the card that had it.
==> user
showModal runs before selected is set in one case (open via shortcut), then nothing appears. can you check
==> think
The effect has [] deps: when first render returns null (no selection), ref is null, and effect never runs again. Depend on selected.
==> say
Right: when nothing is selected at the first render there is no element yet, and the effect does not run a second time. It has to depend on `selected`.
==> edit src/planner/MoveDialog.tsx
-  useEffect(() => dialog.current?.showModal(), []);
+  useEffect(() => {
+    if (selected) dialog.current?.showModal();
+  }, [selected]);
==> run npx tsc -b
==> say
It opens in both cases now. I checked by reading and with tsc; there is no test for the dialog.
==> user
fine, tested by hand
==> say
Thanks.
