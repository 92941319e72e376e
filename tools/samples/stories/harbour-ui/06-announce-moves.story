---
title: Announce moves to screen readers
tool: claude-code
repository: harbour-ui
prompts: v3
at: 2026-10-22 10:11:47
version: 2.1.231
---
==> user
With Mira's help, what we actually need for screen readers:

A component src/planner/LiveRegion.tsx with role="status" that reads out the last change of a booking. Texts, exactly:
- moved: "<ship> moved from <old quay> to <new quay>"
- conflict after a move: the same, followed by ", overlaps with <other ship>"

It must not touch the store: compute the text from the previous and the present bookings (pure function `describeChange(before, after, berths)` in src/planner/describeChange.ts). overlaps() in overlap.ts already tells conflicts. Tests for describeChange: moved, moved with conflict, nothing changed → "". `npx vitest run` and `npx tsc -b` must pass.
==> say
Done means: `describeChange` gives exactly these two texts and "" otherwise, proved by three tests; `LiveRegion` shows it; store.ts is untouched.
==> read src/planner/overlap.ts
==> +read src/planner/PlannerGrid.tsx
==> +read src/planner/store.ts
==> write src/planner/describeChange.test.ts
import { describe, expect, it } from "vitest";
import { describeChange } from "./describeChange";

const berths = [
  { id: "b1", quay: "North quay", length: 180 },
  { id: "b2", quay: "Grain pier", length: 220 },
];
const ship = (name: string, berthId: string) => ({
  id: name,
  ship: name,
  berthId,
  from: "2026-10-22T06:00",
  to: "2026-10-22T18:00",
});

describe("describeChange", () => {
  it("names the ship and both quays", () => {
    expect(describeChange([ship("Alma", "b1")], [ship("Alma", "b2")], berths)).toBe(
      "Alma moved from North quay to Grain pier",
    );
  });

  it("adds the ship that it now overlaps with", () => {
    const before = [ship("Alma", "b1"), ship("Corvus", "b2")];
    const after = [ship("Alma", "b2"), ship("Corvus", "b2")];
    expect(describeChange(before, after, berths)).toBe(
      "Alma moved from North quay to Grain pier, overlaps with Corvus",
    );
  });

  it("is empty when nothing changed", () => {
    expect(describeChange([ship("Alma", "b1")], [ship("Alma", "b1")], berths)).toBe("");
  });
});
==> write src/planner/describeChange.ts
import { overlaps } from "./overlap";
import type { Berth, Booking } from "./types";

/** Says in words which booking moved between two states of the planner; "" when none did. */
export function describeChange(before: Booking[], after: Booking[], berths: Berth[]): string {
  const quay = (id: string) => berths.find((berth) => berth.id === id)?.quay ?? id;
  for (const now of after) {
    const then = before.find((booking) => booking.id === now.id);
    if (!then || then.berthId === now.berthId) continue;
    const other = after.find((booking) => booking.id !== now.id && overlaps(booking, now));
    const move = `${now.ship} moved from ${quay(then.berthId)} to ${quay(now.berthId)}`;
    return other ? `${move}, overlaps with ${other.ship}` : move;
  }
  return "";
}
==> write src/planner/LiveRegion.tsx
import { useEffect, useRef, useState } from "react";
import { describeChange } from "./describeChange";
import { usePlanner } from "./store";

export function LiveRegion() {
  const { bookings, berths } = usePlanner();
  const before = useRef(bookings);
  const [text, setText] = useState("");
  useEffect(() => {
    const change = describeChange(before.current, bookings, berths);
    before.current = bookings;
    if (change) setText(change);
  }, [bookings, berths]);
  return (
    <p role="status" className="visually-hidden">
      {text}
    </p>
  );
}
==> edit src/planner/PlannerGrid.tsx
     <div className="planner" onKeyDown={onKeyDown}>
+      <LiveRegion />
==> edit src/planner/PlannerGrid.tsx
 import { BookingCard } from "./BookingCard";
+import { LiveRegion } from "./LiveRegion";
==> run npx tsc -b
==> tests npx vitest run
ok src/planner/describeChange.test.ts 3
ok src/planner/overlap.test.ts 2
ok src/planner/useRovingFocus.test.ts 6
==> run git status --short
 M src/planner/PlannerGrid.tsx
?? src/planner/LiveRegion.tsx
?? src/planner/describeChange.test.ts
?? src/planner/describeChange.ts
==> say
- Both texts, to the letter: src/planner/describeChange.ts, three tests beside it.
- `LiveRegion` with role="status", mounted in the grid.
- store.ts is untouched (`git status` shows it).

vitest: "11 passed", tsc: no output. The class `visually-hidden` has to exist in your base styles; I did not find it in src/styles.
==> user
it does, in the design package. thank you, exactly right
==> say
You are welcome.
