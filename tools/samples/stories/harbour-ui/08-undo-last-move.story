---
title: Undo a move with Ctrl+Z
tool: claude-code
repository: harbour-ui
prompts: v3
at: 2026-10-30 09:40:12
version: 2.1.236
---
==> user
Ctrl+Z (Cmd+Z on Mac) in the planner undoes the last move. In src/planner/store.ts:

* keep a history of the last 20 moves as {id, from, to}, not whole copies of the bookings
* `undo()` puts the booking back; with nothing to undo it does nothing
* moving to the berth where it already is must not go into the history

Key handling goes into a new hook src/planner/useUndoKey.ts. Test file src/planner/store.test.ts: undo after one move, after two, nothing to undo, the no-op move, the 21st move drops the oldest. Don't use a library for it. vitest + tsc at the end.
==> say
Done means the five cases in src/planner/store.test.ts pass and Ctrl/Cmd+Z calls `undo()`.
==> read src/planner/store.ts
==> +read src/planner/PlannerGrid.tsx
==> write src/planner/store.test.ts
import { beforeEach, describe, expect, it } from "vitest";
import { usePlanner } from "./store";

const planner = () => usePlanner.getState();
const berthOf = (id: string) => planner().bookings.find((booking) => booking.id === id)?.berthId;

beforeEach(() => {
  usePlanner.setState({
    bookings: [
      { id: "a", ship: "Alma", berthId: "b0", from: "2026-10-30T06:00", to: "2026-10-30T09:00" },
    ],
    history: [],
  });
});

describe("undo", () => {
  it("puts the booking back", () => {
    planner().move("a", "b1");
    planner().undo();
    expect(berthOf("a")).toBe("b0");
  });

  it("goes back move by move", () => {
    planner().move("a", "b1");
    planner().move("a", "b2");
    planner().undo();
    expect(berthOf("a")).toBe("b1");
    planner().undo();
    expect(berthOf("a")).toBe("b0");
  });

  it("does nothing when there is nothing to undo", () => {
    planner().undo();
    expect(berthOf("a")).toBe("b0");
  });

  it("does not remember a move to the same berth", () => {
    planner().move("a", "b0");
    expect(planner().history).toEqual([]);
  });

  it("remembers twenty moves", () => {
    for (let i = 1; i <= 21; i += 1) planner().move("a", `b${i}`);
    expect(planner().history).toHaveLength(20);
    expect(planner().history[0]).toEqual({ id: "a", from: "b1", to: "b2" });
  });
});
==> tests npx vitest run src/planner/store.test.ts
ok src/planner/store.test.ts 0
bad src/planner/store.test.ts::undo > puts the booking back
TypeError: planner(...).undo is not a function
 ❯ src/planner/store.test.ts:19:15
bad src/planner/store.test.ts::undo > does not remember a move to the same berth
AssertionError: expected undefined to deeply equal []
 ❯ src/planner/store.test.ts:39:31
==> edit src/planner/store.ts
   selected: string | null;
+  history: Move[];
   select: (id: string | null) => void;
   move: (id: string, berthId: string) => void;
+  undo: () => void;
 }
==> edit src/planner/store.ts
 import type { Berth, Booking } from "./types";
 
+interface Move {
+  id: string;
+  from: string;
+  to: string;
+}
+
+const REMEMBERED = 20;
+
+function placed(bookings: Booking[], id: string, berthId: string): Booking[] {
+  return bookings.map((booking) => (booking.id === id ? { ...booking, berthId } : booking));
+}
+
==> edit src/planner/store.ts
   selected: null,
+  history: [],
   select: (id) => set({ selected: id }),
   move: (id, berthId) =>
-    set((state) => ({
-      bookings: state.bookings.map((booking) =>
-        booking.id === id ? { ...booking, berthId } : booking,
-      ),
-    })),
+    set((state) => {
+      const from = state.bookings.find((booking) => booking.id === id)?.berthId;
+      if (from === undefined || from === berthId) return {};
+      return {
+        bookings: placed(state.bookings, id, berthId),
+        history: [...state.history, { id, from, to: berthId }].slice(-REMEMBERED),
+      };
+    }),
+  undo: () =>
+    set((state) => {
+      const last = state.history.at(-1);
+      if (!last) return {};
+      return {
+        bookings: placed(state.bookings, last.id, last.from),
+        history: state.history.slice(0, -1),
+      };
+    }),
==> write src/planner/useUndoKey.ts
import { useEffect } from "react";
import { usePlanner } from "./store";

/** Undoes the last move on Ctrl+Z or Cmd+Z, except while somebody types. */
export function useUndoKey() {
  const undo = usePlanner((state) => state.undo);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const typing = (event.target as HTMLElement).closest("input, textarea");
      if (typing || event.key !== "z" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      undo();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [undo]);
}
==> edit src/planner/PlannerGrid.tsx
   const { onKeyDown, focused } = useRovingFocus();
+  useUndoKey();
==> edit src/planner/PlannerGrid.tsx
 import { useRovingFocus } from "./useRovingFocus";
+import { useUndoKey } from "./useUndoKey";
==> tests npx vitest run
ok src/planner/describeChange.test.ts 3
ok src/planner/overlap.test.ts 2
ok src/planner/store.test.ts 5
ok src/planner/useRovingFocus.test.ts 6
==> run npx tsc -b
==> say
- History of 20 moves without copies: `history` in src/planner/store.ts.
- `undo()`, a no-op when empty; a move to the same berth is not remembered.
- Ctrl+Z and Cmd+Z: src/planner/useUndoKey.ts, not while typing.
- Five tests, one per case you named.

vitest: "16 passed"; tsc: no output.
==> user
great work
==> say
Thanks.
