"""A session's transcript as steps, in parts that load one after the other, with cited places."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from debrief.markdown import shorten
from debrief.sessions.model import (
    ContextText,
    Evidence,
    Intervention,
    Message,
    Session,
    Subagent,
    ToolCall,
    Turn,
)
from debrief.sessions.titles import title_of
from debrief.view.assessment import Assessment, ShownReason, reasons_of
from debrief.view.marks import Back, EvidenceMark, find

StepKind = Literal[
    "prompt", "expansion", "compaction", "context", "thinking", "words", "call", "person"
]
_LONGEST_TITLE = 160
_FULL, _OVERFULL = 40, 100
"""Steps from which on a part ends with its turn, or within it."""


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """One thing that was said or done."""

    key: str
    """Its own among the session's steps."""
    kind: StepKind
    text: str = ""
    at: datetime | None = None
    call: ToolCall | None = None
    number: int = 0
    """Of a call of a turn, from 1; 0 within a subagent."""
    deed: str = ""
    """Of a person's, what kind of intervention it is."""
    given: tuple[ContextText, ...] = ()
    """What the model was given before its answer and no person wrote."""

    def anchor(self, shown: ShownTurn) -> str:
        """Return the id of its element in a turn; empty for a step that has none."""
        return f"{shown.anchor}-call-{self.number}" if self.call is not None else ""


class ShownAgent(Struct, frozen=True, kw_only=True):
    """A subagent's work."""

    number: int
    """From 1, in the session's order."""
    agent: Subagent
    steps: tuple[Step, ...]


class ShownTurn(Struct, frozen=True, kw_only=True):
    """A turn, or the part of one that is shown."""

    turn: Turn
    anchor: str
    """Its own: turns before the first prompt have one number, and resumed sessions several."""
    steps: tuple[Step, ...]
    is_begun: bool = False
    """It began in the part before."""


class Part(Struct, frozen=True, kw_only=True):
    """A stretch of the transcript that is loaded at once."""

    number: int
    """From 0."""
    turns: tuple[ShownTurn, ...]

    @property
    def title(self) -> str:
        """Return which turns these are."""
        first, last = self.turns[0].turn.number, self.turns[-1].turn.number
        if first == last:
            return f"{'the rest of ' if self.turns[0].is_begun else ''}turn {first}"
        return f"turns {first}–{last}"


class CitedPlace(Struct, frozen=True, kw_only=True):
    """Where one reason is seen."""

    turn: int
    quote: str = ""
    mark: EvidenceMark | None = None
    """None where the session has no such turn."""


class ShownTranscript:
    """A session's steps, parts and marks.

    Args:
        session: the session.
        assessment: what was said of it.
        marks: whether the evidence of its reasons is marked.
    """

    def __init__(self, session: Session, assessment: Assessment, *, marks: bool = True) -> None:
        self.session = session
        self.assessment = assessment
        self.reasons = reasons_of(assessment)
        self.turns: list[ShownTurn] = []
        used: Counter[int] = Counter()
        for place, turn in enumerate(session.turns):
            if turn.number or turn.messages or turn.interventions:
                used[turn.number] += 1
                again = f"-{used[turn.number]}" if used[turn.number] > 1 else ""
                anchor = f"turn-{turn.number}{again}"
                steps = tuple(_steps(turn, str(place)))
                self.turns.append(ShownTurn(turn=turn, anchor=anchor, steps=steps))
        self.agents = [
            ShownAgent(number=n, agent=agent, steps=tuple(_of_agent(agent, f"agent-{n}")))
            for n, agent in enumerate(session.subagents, 1)
        ]
        self._started, self._stray = _placed(self.turns, self.agents)
        self.parts = _parts(self.turns)
        self._part_of = {
            step.key: part.number
            for part in self.parts
            for shown in part.turns
            for step in shown.steps
        }
        self._anchors = {
            anchor: part.number
            for part in reversed(self.parts)
            for shown in part.turns
            for anchor in _anchors(shown)
        }
        self.places: dict[str, list[CitedPlace]] = {}
        """By the id of a reason."""
        self.marks: list[EvidenceMark] = []
        self._marks_of: defaultdict[str, list[EvidenceMark]] = defaultdict(list)
        self._mark(self.reasons if marks else ())

    @property
    def title(self) -> str:
        """Return what the session is called; its id where it has no words."""
        title = title_of(self.session.title, (turn.prompt for turn in self.session.turns))
        return shorten(title, _LONGEST_TITLE) or self.session.id

    def agents_of(self, call: ToolCall) -> Sequence[ShownAgent]:
        """Return the subagents that a call started, and no other one."""
        return self._started.get(call.id, ())

    def stray_agents(self) -> Sequence[ShownAgent]:
        """Return the subagents of which it cannot be told which call started them."""
        return self._stray

    def marks_of(self, step: Step) -> Sequence[EvidenceMark]:
        """Return the marks within a step."""
        return self._marks_of.get(step.key, ())

    def part_with(self, anchor: str) -> Part | None:
        """Return the part that an anchor is in (``turn-3``, ``turn-3-call-2``, ``mark-7``)."""
        number = self._anchors.get(anchor)
        return None if number is None else self.parts[number]

    def text_at(self, anchor: str) -> str | None:
        """Return the whole text of a call, or of the prompt of a turn; None without one."""
        for shown in self.turns:
            if anchor == shown.anchor:
                return shown.turn.prompt
            for step in shown.steps:
                if step.call is not None and step.anchor(shown) == anchor:
                    return f"{step.call.name} {step.call.input}\n\n{step.call.result or ''}"
        return None

    def as_session(self, agent: ShownAgent) -> Session:
        """Return a subagent's work as a session of one turn, so that it has a page like one.

        The subagents that it started have their numbers; of the others nothing is in it.
        """
        turn = Turn(number=1, prompt=agent.agent.prompt, messages=agent.agent.messages)
        started = {each.number for each in _within(agent.steps, self._started)}
        others = tuple(
            each.agent if each.number in started else Subagent(id=each.agent.id)
            for each in self.agents
        )
        title = agent.agent.description or agent.agent.type or "Subagent"
        return replace(self.session, title=title, turns=(turn,), subagents=others)

    def _mark(self, reasons: Iterable[ShownReason]) -> None:
        """Find the place of each piece of evidence, and number the marks as they follow there."""
        by_number = {shown.turn.number: shown for shown in self.turns}
        calls = self._steps_of_calls()
        order = {
            step.key: place
            for place, step in enumerate(s for shown in self.turns for s in shown.steps)
        }
        places: dict[tuple[int, str, str], list[ShownReason]] = {}
        where: dict[tuple[int, str, str], tuple[tuple[int, str, int], Step, Step]] = {}
        for reason in reasons:
            for evidence in reason.evidence:
                shown = by_number.get(evidence.turn)
                target = None if shown is None else _target(shown, evidence, calls, self._started)
                if target is None:
                    self.places.setdefault(reason.id, []).append(
                        CitedPlace(turn=evidence.turn, quote=evidence.quote)
                    )
                    continue
                outer, inner = target
                key = (evidence.turn, inner.key, evidence.quote)
                if key not in where:
                    at = find(_text_of(inner), evidence.quote) if evidence.quote else None
                    within = -1 if at is None else at[0]
                    where[key] = (order[outer.key], inner.key, within), outer, inner
                if reason not in places.setdefault(key, []):
                    places[key].append(reason)
        numbered = sorted(places, key=lambda key: where[key][0])
        for number, key in enumerate(numbered, 1):
            backs = tuple(Back(f"#{place.id}", place.name) for place in places[key])
            mark = EvidenceMark(number=number, turn=key[0], quote=key[2], backs=backs)
            _, outer, inner = where[key]
            self.marks.append(mark)
            self._marks_of[inner.key].append(mark)
            self._anchors[mark.anchor] = self._part_of[outer.key]
            for reason in places[key]:
                self.places.setdefault(reason.id, []).append(
                    CitedPlace(turn=key[0], quote=key[2], mark=mark)
                )

    def _steps_of_calls(self) -> dict[str, tuple[Step, Step]]:
        """Return by each call's id the step of a turn that it is in, and its own step."""
        found: dict[str, tuple[Step, Step]] = {}
        for shown in self.turns:
            for outer in shown.steps:
                left = [outer]
                while left:
                    step = left.pop()
                    if step.call is None or not step.call.id or step.call.id in found:
                        continue
                    found[step.call.id] = outer, step
                    for agent in self.agents_of(step.call):
                        left += agent.steps
        return found


def _placed(
    turns: Iterable[ShownTurn], agents: Sequence[ShownAgent]
) -> tuple[dict[str, list[ShownAgent]], list[ShownAgent]]:
    """Return the subagents by the ids of the calls that started them, and those without a call.

    Each has one place. An id that several calls have, as those do that were masked with one word,
    names none of them; and of subagents that would stand within each other, the first has no call.
    """
    own = [step for shown in turns for step in shown.steps]
    ids = Counter(
        step.call.id
        for steps in (own, *(agent.steps for agent in agents))
        for step in steps
        if step.call is not None and step.call.id
    )
    started: defaultdict[str, list[ShownAgent]] = defaultdict(list)
    for agent in agents:
        if ids[agent.agent.call_id] == 1:
            started[agent.agent.call_id].append(agent)
    stray = [agent for agent in agents if ids[agent.agent.call_id] != 1]
    roots = [*own, *(step for agent in stray for step in agent.steps)]
    reached = {agent.number for agent in (*stray, *_within(roots, started))}
    for agent in agents:
        if agent.number not in reached:
            started[agent.agent.call_id].remove(agent)
            stray.append(agent)
            reached |= {agent.number, *(each.number for each in _within(agent.steps, started))}
    return dict(started), sorted(stray, key=lambda agent: agent.number)


def _within(
    steps: Iterable[Step], started: Mapping[str, Sequence[ShownAgent]]
) -> Iterator[ShownAgent]:
    """Yield the subagents that stand within steps, at any depth, each once."""
    seen: set[int] = set()
    left = list(steps)
    while left:
        call = left.pop().call
        for agent in started.get(call.id, ()) if call else ():
            if agent.number not in seen:
                seen.add(agent.number)
                yield agent
                left += agent.steps


def _text_of(step: Step) -> str:
    """Return what quotations are looked for in."""
    call = step.call
    return step.text if call is None else f"{call.input}\n{call.result or ''}"


def _anchors(shown: ShownTurn) -> Iterator[str]:
    if not shown.is_begun:
        yield shown.anchor
    yield from filter(None, (step.anchor(shown) for step in shown.steps))


def _target(
    shown: ShownTurn,
    place: Evidence,
    calls: dict[str, tuple[Step, Step]],
    started: Mapping[str, Sequence[ShownAgent]],
) -> tuple[Step, Step] | None:
    """Return where evidence is marked: a step of its turn, and the same or one of a subagent's
    within it."""
    if place.call in calls:
        return calls[place.call]
    if not shown.steps:
        return None
    if place.quote:
        for step in shown.steps:
            if step.call is None and find(step.text, place.quote):
                return step, step
        for step in shown.steps:
            for agent in started.get(step.call.id, ()) if step.call else ():
                for inner in agent.steps:
                    if inner.call is None and find(inner.text, place.quote):
                        return step, inner
        for step in shown.steps:
            if step.call and find(_text_of(step), place.quote):
                return step, step
    return shown.steps[0], shown.steps[0]


def _steps(turn: Turn, key: str) -> Iterator[Step]:
    """Yield a turn's steps; what the person did comes where it happened."""
    place = 0
    deeds = list(turn.interventions)
    if turn.number:
        yield Step(key=f"{key}.prompt", kind="prompt", text=turn.prompt, at=turn.at)
    if turn.expansion:
        yield Step(key=f"{key}.expansion", kind="expansion", text=turn.expansion)
    if turn.compacted and not any(message.summary for message in turn.messages):
        yield Step(key=f"{key}.compaction", kind="compaction")
    number = 0
    for message in turn.messages:
        while deeds and deeds[0].at and message.at and deeds[0].at <= message.at:
            yield _deed(deeds.pop(0), f"{key}.{(place := place + 1)}")
        for step in _of_message(message, f"{key}.{(place := place + 1)}"):
            if step.call is not None:
                number += 1
                yield replace(step, number=number)
            else:
                yield step
    for deed in deeds:
        yield _deed(deed, f"{key}.{(place := place + 1)}")


def _of_agent(agent: Subagent, key: str) -> Iterator[Step]:
    for place, message in enumerate(agent.messages):
        yield from _of_message(message, f"{key}.{place}")


def _of_message(message: Message, key: str) -> Iterator[Step]:
    if message.summary:
        yield Step(key=f"{key}.summary", kind="compaction", text=message.summary, at=message.at)
    if message.context:
        text = "\n".join(given.text for given in message.context)
        yield Step(key=f"{key}.context", kind="context", text=text, given=message.context)
    if message.thinking.strip():
        yield Step(key=f"{key}.thinking", kind="thinking", text=message.thinking, at=message.at)
    if message.text.strip():
        yield Step(key=f"{key}.words", kind="words", text=message.text, at=message.at)
    for place, call in enumerate(message.calls):
        yield Step(key=f"{key}.{place}", kind="call", call=call, at=call.at or message.at)


def _deed(deed: Intervention, key: str) -> Step:
    return Step(key=key, kind="person", text=deed.text, at=deed.at, deed=deed.kind)


def _parts(turns: Iterable[ShownTurn]) -> list[Part]:
    """Cut turns into parts: between turns where that will do, within a long one where not."""
    parts: list[list[ShownTurn]] = [[]]
    count = 0
    for shown in turns:
        if count >= _FULL:
            parts.append([])
            count = 0
        start = 0
        while start < len(shown.steps) or not start:
            steps = shown.steps[start : start + _OVERFULL - count]
            parts[-1].append(replace(shown, steps=steps, is_begun=start > 0))
            start, count = start + max(len(steps), 1), count + len(steps)
            if count >= _OVERFULL:
                parts.append([])
                count = 0
    return [Part(number=n, turns=tuple(part)) for n, part in enumerate(filter(None, parts))]
