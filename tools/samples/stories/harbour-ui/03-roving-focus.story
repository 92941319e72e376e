---
title: Roving focus in the planner grid
tool: claude-code
repository: harbour-ui
prompts: v2
model: claude-opus-4-5-20251101
at: 2026-10-12 09:05:33
version: 2.1.229
---
==> user
Second try at the planner's keyboard, with a spec this time.

New hook src/planner/useRovingFocus.ts, used by PlannerGrid.tsx:
- ArrowLeft/ArrowRight: previous/next booking on the same berth, by start time; stop at the ends (no wrapping)
- ArrowUp/ArrowDown: the berth above/below; land on the booking whose start is closest
- Home/End: first/last booking of the berth
- only one card has tabIndex 0, the others -1

Constraint: the finding of the next booking must be a pure function `nextBooking(bookings, berths, current, key)`, so that we can test it without a DOM. Acceptance: a test for each bullet in src/planner/useRovingFocus.test.ts. Run vitest and tsc when you're done.
==> read src/planner/PlannerGrid.tsx
==> +read src/planner/BookingCard.tsx
==> +read src/planner/types.ts
==> think
Open question: an empty berth above/below: skip it or stop? Ask.
==> ask Empty berths
ArrowDown onto a berth without bookings: what should happen?
- Skip it: Go on to the nearest berth that has bookings
- Stay: Do nothing, the focus stays where it is
* Skip it
==> say
Skipping them. I'll write the pure function with its tests first.
==> write src/planner/useRovingFocus.test.ts
import { describe, expect, it } from "vitest";
import type { Berth, Booking } from "./types";
import { nextBooking } from "./useRovingFocus";

const berths: Berth[] = ["q1", "q2", "q3"].map((id) => ({ id, quay: id, length: 200 }));
const at = (id: string, berthId: string, hour: string): Booking => ({
  id,
  ship: id,
  berthId,
  from: `2026-10-12T${hour}:00`,
  to: `2026-10-12T${hour}:59`,
});
const bookings = [
  at("early", "q1", "06"),
  at("noon", "q1", "12"),
  at("late", "q1", "20"),
  at("morning", "q3", "08"),
  at("evening", "q3", "19"),
];
const next = (current: string, key: string) => nextBooking(bookings, berths, current, key);

describe("nextBooking", () => {
  it("goes along the berth by start time", () => {
    expect(next("early", "ArrowRight")).toBe("noon");
    expect(next("noon", "ArrowLeft")).toBe("early");
  });

  it("stops at both ends", () => {
    expect(next("late", "ArrowRight")).toBe("late");
    expect(next("early", "ArrowLeft")).toBe("early");
  });

  it("goes to the closest start on the next berth that has bookings", () => {
    expect(next("late", "ArrowDown")).toBe("evening");
    expect(next("early", "ArrowDown")).toBe("morning");
    expect(next("morning", "ArrowUp")).toBe("early");
  });

  it("stays when there is no berth further on", () => {
    expect(next("noon", "ArrowUp")).toBe("noon");
  });

  it("goes to the first and the last of the berth", () => {
    expect(next("noon", "Home")).toBe("early");
    expect(next("noon", "End")).toBe("late");
  });

  it("leaves other keys alone", () => {
    expect(next("noon", "x")).toBe("noon");
  });
});
==> write src/planner/useRovingFocus.ts
import { useCallback, type KeyboardEvent } from "react";
import { usePlanner } from "./store";
import type { Berth, Booking } from "./types";

/** Returns the id of the booking that a key leads to from `current`, or `current` itself. */
export function nextBooking(
  bookings: Booking[],
  berths: Berth[],
  current: string,
  key: string,
): string {
  const here = bookings.find((booking) => booking.id === current);
  if (!here) return bookings[0]?.id ?? current;
  const row = onBerth(bookings, here.berthId);
  const place = row.findIndex((booking) => booking.id === current);
  switch (key) {
    case "ArrowRight":
      return row[Math.min(place + 1, row.length - 1)].id;
    case "ArrowLeft":
      return row[Math.max(place - 1, 0)].id;
    case "Home":
      return row[0].id;
    case "End":
      return row[row.length - 1].id;
    case "ArrowUp":
      return acrossBerths(bookings, [...berths].reverse(), here);
    case "ArrowDown":
      return acrossBerths(bookings, berths, here);
    default:
      return current;
  }
}

function onBerth(bookings: Booking[], berthId: string): Booking[] {
  return bookings
    .filter((booking) => booking.berthId === berthId)
    .sort((a, b) => a.from.localeCompare(b.from));
}

function acrossBerths(bookings: Booking[], inOrder: Berth[], here: Booking): string {
  const from = inOrder.findIndex((berth) => berth.id === here.berthId);
  for (const berth of inOrder.slice(from + 1)) {
    const row = onBerth(bookings, berth.id);
    if (row.length > 0) {
      const distance = (booking: Booking) =>
        Math.abs(Date.parse(booking.from) - Date.parse(here.from));
      return row.reduce((best, one) => (distance(one) < distance(best) ? one : best)).id;
    }
  }
  return here.id;
}

export function useRovingFocus() {
  const { berths, bookings, selected, select } = usePlanner();
  const onKeyDown = useCallback(
    (event: KeyboardEvent) => {
      const next = nextBooking(bookings, berths, selected ?? "", event.key);
      if (next === selected) return;
      event.preventDefault();
      select(next);
    },
    [berths, bookings, selected, select],
  );
  return { onKeyDown, focused: selected ?? bookings[0]?.id };
}
==> tests npx vitest run
ok src/planner/overlap.test.ts 2
ok src/planner/useRovingFocus.test.ts 6
==> say
The function holds. Now the grid and the card.
==> edit src/planner/PlannerGrid.tsx
-  const { berths, bookings, selected, select } = usePlanner();
+  const { berths, bookings, selected, select } = usePlanner();
+  const { onKeyDown, focused } = useRovingFocus();
   return (
-    <div className="planner">
+    <div className="planner" onKeyDown={onKeyDown}>
==> edit src/planner/PlannerGrid.tsx
                 selected={booking.id === selected}
+                focusable={booking.id === focused}
==> edit src/planner/PlannerGrid.tsx
 import { BookingCard } from "./BookingCard";
+import { useRovingFocus } from "./useRovingFocus";
==> edit src/planner/BookingCard.tsx
   selected: boolean;
+  focusable: boolean;
   onSelect: () => void;
==> edit src/planner/BookingCard.tsx
-export function BookingCard({ booking, selected, onSelect }: Props) {
+export function BookingCard({ booking, selected, focusable, onSelect }: Props) {
==> edit src/planner/BookingCard.tsx
       aria-pressed={selected}
+      tabIndex={focusable ? 0 : -1}
==> run npx tsc -b
==> tests npx vitest run
ok src/planner/overlap.test.ts 2
ok src/planner/useRovingFocus.test.ts 6
==> say
Every point of the spec is in, each with a test in src/planner/useRovingFocus.test.ts: along the berth, stopping at the ends, up and down to the closest start, Home and End. Empty berths are skipped as you answered. One card has tabIndex 0. vitest: 8 passed, tsc clean.
==> user
works beautifully, merging
==> slash /cost
Total cost:            $0.84
Total duration (API):  4m 11s
Total code changes:    142 lines added, 4 lines removed
