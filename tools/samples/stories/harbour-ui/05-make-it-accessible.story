---
title: Accessibility
tool: claude-code
repository: harbour-ui
prompts: v2
at: 2026-10-20 16:20:00
version: 2.1.231
discard: true
---
==> user
make the planner accessible
==> say
I'll have a look at what is there.
==> read src/planner/PlannerGrid.tsx
==> read src/planner/BookingCard.tsx
==> say
I suggest the grid pattern: `role="grid"`, rows and cells, labels for each.
==> edit src/planner/PlannerGrid.tsx
-    <div className="planner" onKeyDown={onKeyDown}>
+    <div className="planner" role="grid" aria-label="Berths" onKeyDown={onKeyDown}>
==> edit src/planner/PlannerGrid.tsx
-        <div className="planner-row" key={berth.id}>
-          <span className="planner-berth">{berth.quay}</span>
+        <div className="planner-row" role="row" key={berth.id}>
+          <span className="planner-berth" role="rowheader">{berth.quay}</span>
==> edit src/planner/BookingCard.tsx
       aria-pressed={selected}
+      role="gridcell"
==> user
no, that's not what I asked. the screen reader reads nothing when a ship is moved
==> edit src/planner/store.ts
   selected: string | null;
+  announcement: string;
==> edit src/planner/store.ts
   selected: null,
+  announcement: "",
==> edit src/planner/store.ts
       bookings: state.bookings.map((booking) =>
         booking.id === id ? { ...booking, berthId } : booking,
       ),
+      announcement: `moved to ${berthId}`,
==> tests npx vitest run
ok src/planner/overlap.test.ts 2
ok src/planner/useRovingFocus.test.ts 5
bad src/planner/useRovingFocus.test.ts::nextBooking > stops at both ends
TypeError: usePlanner.getState is not a function
 ❯ src/planner/store.ts:14:31
==> edit src/planner/PlannerGrid.tsx
-  const { berths, bookings, selected, select } = usePlanner();
+  const { berths, bookings, selected, select, announcement } = usePlanner();
==> edit src/planner/PlannerGrid.tsx
-    <div className="planner" role="grid" aria-label="Berths" onKeyDown={onKeyDown}>
+    <div className="planner" role="grid" aria-label={announcement} onKeyDown={onKeyDown}>
==> refuse
this relabels the whole grid on every move, don't
==> user
also the colours, contrast is bad. and the berth id means nothing to anyone, say the quay
==> edit src/styles/planner.css
 .card-selected {
-  background: var(--accent);
+  background: #0b3d91;
==> edit src/planner/store.ts
-      announcement: `moved to ${berthId}`,
+      announcement: `moved to ${state.berths.find((berth) => berth.id === berthId)?.quay}`,
==> tests npx vitest run
ok src/planner/overlap.test.ts 2
ok src/planner/useRovingFocus.test.ts 4
bad src/planner/useRovingFocus.test.ts::nextBooking > stops at both ends
TypeError: usePlanner.getState is not a function
 ❯ src/planner/store.ts:14:31
bad src/planner/useRovingFocus.test.ts::nextBooking > goes to the first and the last of the berth
TypeError: usePlanner.getState is not a function
 ❯ src/planner/store.ts:14:31
==> edit src/planner/store.ts
-      announcement: `moved to ${state.berths.find((berth) => berth.id === berthId)?.quay}`,
+      announcement: announce(state.berths, berthId),
==> run npx tsc -b
==> interrupt
==> user
why do you keep editing the same line. and the colour is hard coded, we have tokens. stop. I'll ask Mira
