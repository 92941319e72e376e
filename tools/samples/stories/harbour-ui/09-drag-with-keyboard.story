---
title: Pick up and drop bookings with Space
tool: droid
repository: harbour-ui
prompts: v3
at: 2026-11-02 11:18:50
---
==> user
Keyboard drag & drop for bookings, new file src/planner/dragState.ts:

- a reducer `drag(state, event)`; states: idle, carrying {id, over}
- Space on a card: idle → carrying, over = its own berth
- Up/Down while carrying: over = berth above/below, stops at the ends
- Space again: drop → idle, with an effect {move: id, to: over}
- Escape: idle, no effect

Pure, no React in that file. Acceptance: src/planner/dragState.test.ts has a test per line above. Then run `npx vitest run` and `npx eslint src`, both have to be clean.
==> say
Done means: the reducer is pure, each of the five lines has its test, vitest and eslint are clean.
==> read src/planner/types.ts
==> +read src/planner/useRovingFocus.ts
==> write src/planner/dragState.test.ts
import { describe, expect, it } from "vitest";
import { drag, idle, type DragState } from "./dragState";

const berths = ["b1", "b2", "b3"];
const carrying = (over: string): DragState => ({ kind: "carrying", id: "alma", over });

describe("drag", () => {
  it("picks a booking up where it lies", () => {
    const { state, effect } = drag(idle, { key: " ", id: "alma", berthId: "b2", berths });
    expect(state).toEqual(carrying("b2"));
    expect(effect).toBeNull();
  });

  it("goes to the berth below and above", () => {
    const down = drag(carrying("b2"), { key: "ArrowDown", berths });
    expect(down.state).toEqual(carrying("b3"));
    const up = drag(carrying("b2"), { key: "ArrowUp", berths });
    expect(up.state).toEqual(carrying("b1"));
  });

  it("stops at the first and the last berth", () => {
    expect(drag(carrying("b1"), { key: "ArrowUp", berths }).state).toEqual(carrying("b1"));
    expect(drag(carrying("b3"), { key: "ArrowDown", berths }).state).toEqual(carrying("b3"));
  });

  it("drops where it is", () => {
    const { state, effect } = drag(carrying("b3"), { key: " ", berths });
    expect(state).toEqual(idle);
    expect(effect).toEqual({ move: "alma", to: "b3" });
  });

  it("forgets it all on Escape", () => {
    const { state, effect } = drag(carrying("b3"), { key: "Escape", berths });
    expect(state).toEqual(idle);
    expect(effect).toBeNull();
  });
});
==> write src/planner/dragState.ts
export type DragState = { kind: "idle" } | { kind: "carrying"; id: string; over: string };

export interface DragEvent {
  key: string;
  /** Ids of the berths from top to bottom. */
  berths: string[];
  /** The focused booking and its berth, when there is one. */
  id?: string;
  berthId?: string;
}

export interface Step {
  state: DragState;
  effect: { move: string; to: string } | null;
}

export const idle: DragState = { kind: "idle" };

/** Returns what a key does to a booking that is, or is not, being carried. */
export function drag(state: DragState, event: DragEvent): Step {
  const stay: Step = { state, effect: null };
  if (state.kind === "idle") {
    const { key, id, berthId } = event;
    if (key !== " " || !id || !berthId) return stay;
    return { state: { kind: "carrying", id, over: berthId }, effect: null };
  }
  switch (event.key) {
    case "ArrowUp":
      return { state: { ...state, over: neighbour(event.berths, state.over, -1) }, effect: null };
    case "ArrowDown":
      return { state: { ...state, over: neighbour(event.berths, state.over, 1) }, effect: null };
    case " ":
      return { state: idle, effect: { move: state.id, to: state.over } };
    case "Escape":
      return { state: idle, effect: null };
    default:
      return stay;
  }
}

function neighbour(berths: string[], over: string, step: number): string {
  const place = berths.indexOf(over) + step;
  return berths[Math.max(0, Math.min(place, berths.length - 1))];
}
==> tests npx vitest run
ok src/planner/describeChange.test.ts 3
ok src/planner/dragState.test.ts 5
ok src/planner/overlap.test.ts 2
ok src/planner/store.test.ts 5
ok src/planner/useRovingFocus.test.ts 6
==> run npx eslint src
==> say
Each line has its test in src/planner/dragState.test.ts: picking up, up and down, stopping at the ends, dropping with the effect, Escape. No React in dragState.ts. vitest: "21 passed"; eslint: no output. It is not wired to the grid yet, as you asked for the reducer only.
==> user
yes wiring is the next session. nice
==> say
Thanks.
