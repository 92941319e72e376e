"""A session as plain text for a model: one trace a turn, subagents included.

Every observation's text carries its own label and line end, so a trace's text and tokens are those
of its observations added up. What comes out of the session is made safe before tokens are counted:
look-alikes of our labels are marked and invisible characters shown, both of which make text longer.

The person's words, the files that their first request names and the agent's closing words are
shown whole, but for huge pastes; all else by how much it tells (``shown_calls``), and a subagent by
its edits and last words. What the person did inside a turn stands where it happened. Lines that
were shown once (``repeats``) are not shown again. Of a session that is long even so, the middle is
an outline, before it is split.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from debrief.markdown import counted
from debrief.models.fencing import defuse, finish
from debrief.scoring.model import Observation, Trace
from debrief.scoring.repeats import ShownLines
from debrief.scoring.shortening import shortened
from debrief.scoring.shown_calls import (
    FULL,
    OUTLINE,
    Rooms,
    call_shown,
    edits_shown,
    outcome_label,
    result_shown,
)
from debrief.sessions.model import Intervention, Message, Session, Subagent, ToolCall, Turn
from debrief.sessions.readers.documents import mend_text
from debrief.signals.request import spelled_out
from debrief.signals.shell import arguments

FORM: Final = 6
"""Raised when what is shown of a session changes: it is scored anew then."""
PASTE = (8_000, 3_000)
"""Characters of the person's words in one place that are shown."""
REQUEST = (80_000, 40_000)
"""Of the first request, with the files that it names."""
TASK_AGAIN = (20_000, 10_000)
"""Of that, where it is repeated with a part that it does not stand in."""
EXPANSION = (1_200, 300)
"""Of the text that a command of the person's stands for."""
PERSON_BUDGET = 24_000
"""Characters of all that the person said that are shown with every part but the one it is in."""
SUBAGENT_BUDGET = 4_000
"""Characters of a subagent's edits that are shown beside its last words."""
OUTLINED_FROM = 32_000
"""Characters from which on the middle of a session is an outline: about 9,000 tokens."""
_BEGINNING, _ENDING = 5_000, 11_000
"""Characters of such a session that are shown as of any other."""
_REPEATED = 600
"""Characters by which a subagent's last words are known again in the result of its call."""
_OF_PROGRAMS = """
add-dir agents approvals bashes bug chat clear compact config context copy cost diff doctor
editor effort exit export extensions fast feedback help hooks ide install-github- app
keybindings login logout mcp memory model new output-style permissions plugin privacy privacy-
settings quit release-notes reload-plugins remote-control rename resume rewind sandbox settings
stats status statusline stickers tasks terminal-setup theme tools undo upgrade usage vim voice
"""
"""Commands by which a person works their program and asks the agent for nothing."""


def traces_of(session: Session) -> list[Trace]:
    """Return the session's traces in order, the preamble included when there is one.

    A subagent's work follows the call that started it. What started it is known by its id or its
    prompt in the call, else by the time; otherwise it follows the last turn's work.
    Where only subagents' work is left of a session, that is the one trace, with number 0.
    """
    session = spelled_out(session)
    writer = _Writer(session)
    if not session.turns and session.subagents:
        work = [part for each in session.subagents for part in writer.subagent(each, FULL, 0)]
        return [Trace(number=0, observations=tuple(work))]
    traces = writer.traces()
    outlined = _middle(writer.sizes)
    return _Writer(session, outlined).traces() if outlined else traces


def trace_text(trace: Trace) -> str:
    """Return a trace as text; each observation starts on a line of its own."""
    return "".join(
        part.text if part.text.endswith("\n") or not part.text else f"{part.text}\n"
        for part in trace.observations
    )


def task_context(session: Session) -> str:
    """Return the first human message, with the files that it names; empty when there is none."""
    return next((turn.prompt for turn in spelled_out(session).turns if turn.number > 0), "")


def shows_task(session: Session) -> bool:
    """Return whether the first human message is short enough to be shown whole."""
    return len(task_context(session)) <= sum(REQUEST)


def words_of_person(session: Session) -> str:
    """Return what the person said in all turns: what was asked for, and how content they were."""
    said = [
        _labelled(kind, f"[USER] {kind} of turn {turn.number}", shortened(text, *PASTE))
        for turn in session.turns
        for kind, text in (
            ("prompt", turn.prompt),
            *(
                (intervention.kind, intervention.text or "(in silence)")
                for intervention in turn.interventions
                if not is_of_program(intervention)
            ),
        )
        if text
    ]
    return "".join(part.text for part in _within(said, PERSON_BUDGET))


def is_of_program(deed: Intervention) -> bool:
    """Return whether a deed only works the program, such as ``/clear``, and says nothing."""
    if deed.kind != "slash_command":
        return False
    name, *_ = deed.text.split(maxsplit=1) or [""]
    return name.removeprefix("/").lower() in _OF_PROGRAMS.split()


_OTHERS, _PROGRAM = 700, 100
"""Characters of a text in the model's request that no person wrote: what a command, a task or a
hook said bears on the work, and the program's lists and reminders hardly do."""


class _Writer:
    """Writes a session down, once from its first to its last message.

    Args:
        session: with what its requests name spelled out.
        outlined: messages, by their number from 0, that are shown in outline.
    """

    def __init__(self, session: Session, outlined: frozenset[int] = frozenset()) -> None:
        self._session = session
        self._outlined = outlined
        self._first = next((turn.number for turn in session.turns if turn.number > 0), 0)
        self._known = ShownLines()
        self._todos: dict[str, str] = {}
        """The list of things to do as it was shown last: what, and how far it is."""
        self._deeds: dict[int, list[Intervention]] = {}
        """What the person did to a call."""
        self._started_by, self._loose = _places(session)
        self.sizes: list[int] = []
        """Characters that each message takes, in order."""

    def traces(self) -> list[Trace]:
        """Return the traces; see ``traces_of``."""
        return [self._trace(index, turn) for index, turn in enumerate(self._session.turns)]

    def _trace(self, index: int, turn: Turn) -> Trace:
        shown = [Observation("turn", _headline(index, turn))]
        if turn.prompt or turn.images:
            pictures = f"\n({turn.images} pictures attached)" if turn.images else ""
            room = REQUEST if turn.number == self._first else PASTE
            prompt = self._once(turn.prompt, turn.number, room)
            shown.append(_labelled("prompt", "[USER]", f"{prompt}{pictures}"))
        if turn.expansion:
            shown.append(_expanded(turn.expansion))
        before, by_call, behind = _placed(turn)
        self._deeds.update(by_call)
        for message in turn.messages:
            shown += _of_deeds(before.get(id(message), ()))
            rooms = OUTLINE if len(self.sizes) in self._outlined else FULL
            closing = message is turn.messages[-1]
            parts = self._message(turn.number, message, rooms, closing)
            self.sizes.append(sum(len(part.text) for part in parts))
            shown += parts
        shown += _of_deeds(behind)
        for subagent in self._loose.get(index, ()):
            shown += self.subagent(subagent, FULL, turn.number)
        return Trace(number=turn.number, observations=tuple(shown))

    def _once(self, text: str, turn: int, room: tuple[int, int]) -> str:
        """Return a text without what was shown before, as long as there is room."""
        shown = shortened(self._known.without_repeats(text), *room)
        self._known.add(shown, turn)
        return shown

    def _message(
        self, turn: int, message: Message, rooms: Rooms, closing: bool
    ) -> list[Observation]:
        """Return a message with its calls; the words that close a turn are whole."""
        parts: list[Observation] = [
            _labelled(
                "context",
                f"[CONTEXT] {text.said_by}",
                shortened(text.text, _PROGRAM if text.said_by == "program" else _OTHERS, 0),
            )
            for text in message.context
        ]
        if message.text.strip():
            room = rooms.closing if closing else rooms.message
            parts.append(_labelled("message", "[ASSISTANT]", self._once(message.text, turn, room)))
        for call in message.calls:
            parts += self._call(turn, call, rooms)
            parts += _of_deeds(self._deeds.get(id(call), ()))
            for subagent in self._started_by.get(id(call), ()):
                parts += self.subagent(subagent, rooms, turn, call)
        return parts

    def _call(self, turn: int, call: ToolCall, rooms: Rooms) -> Iterator[Observation]:
        text = self._plan(call, turn) if call.action == "plan" else ""
        name = call.name
        if not text:
            name, text = call_shown(call, rooms, self._known, turn, self._session.cwd)
        shown, outcome = result_shown(call, rooms, self._known, turn), outcome_label(call)
        if shown:
            yield _labelled("call", f"[TOOL_CALLS] {name}", text)
            yield _labelled("result", f"[TOOL_RESULTS] {outcome}", shown)
        else:
            yield _labelled("call", f"[TOOL_CALLS] {name} → {outcome}", text)

    def _plan(self, call: ToolCall, turn: int) -> str:
        """Return a plan that is handed in, or what of a list of things to do is new or changed."""
        given = arguments(call)
        if isinstance(plan := given.get("plan"), str):
            return self._once(plan, turn, PASTE)
        listed = next((given[key] for key in ("todos", "plan") if key in given), None)
        if not isinstance(listed, list):
            return ""
        items = [each for each in listed if isinstance(each, dict)]
        todos = {
            str(item.get("content") or item.get("step") or item): str(item.get("status", ""))
            for item in items
        }
        new = [
            f"[{state}] {what}" for what, state in todos.items() if self._todos.get(what) != state
        ]
        self._todos = todos
        return "\n".join(new) or "(as before)"

    def subagent(
        self, subagent: Subagent, rooms: Rooms, turn: int, call: ToolCall | None = None
    ) -> Iterator[Observation]:
        """Yield a subagent's task, how many calls it made, its edits, and its last words."""
        name = " ".join(filter(None, (subagent.type, subagent.description))) or subagent.id
        asked = "" if call and subagent.prompt.strip() in _texts_of(call) else subagent.prompt
        yield _labelled("subagent", f"[SUBAGENTS] {name}", shortened(asked, *rooms.arguments))
        calls = [each for message in subagent.messages for each in message.calls]
        if calls:
            counts = Counter(each.name for each in calls).most_common()
            made = ", ".join(f"{name} {count}" for name, count in counts)
            yield _labelled("subagent", f"[SUBAGENTS] {counted(len(calls), 'call')}: {made}", "")
        yield from _within([*self._edits(calls, turn)], SUBAGENT_BUDGET)
        words = next((m.text.strip() for m in reversed(subagent.messages) if m.text.strip()), "")
        if words and not (call and words[:_REPEATED] in (call.result or "")):
            said = self._once(words, turn, rooms.closing)
            yield _labelled("subagent", "[SUBAGENTS] last words", said)
        yield Observation("subagent", "[SUBAGENTS] end\n")

    def _edits(self, calls: Iterable[ToolCall], turn: int) -> Iterator[Observation]:
        for call in calls:
            if edits_shown(call):
                name, text = call_shown(call, OUTLINE, self._known, turn, self._session.cwd)
                yield _labelled("subagent", f"[SUBAGENTS] {name}: {outcome_label(call)}", text)


def _middle(sizes: Sequence[int]) -> frozenset[int]:
    """Return which messages of a long session lie between its beginning and its end; neither the
    first nor the last one ever does."""
    if sum(sizes) <= OUTLINED_FROM:
        return frozenset()
    first = max(1, _fitting(sizes, _BEGINNING))
    last = len(sizes) - max(1, _fitting(reversed(sizes), _ENDING))
    return frozenset(range(first, last))


def _headline(index: int, turn: Turn) -> str:
    notes = []
    if not turn.number:
        notes.append("work without a prompt" if index else "work before the first prompt")
    if turn.compacted:
        notes.append("the conversation was compacted")
    if turn.rewound:
        notes.append("taken back by the person: nothing later builds on it")
    suffix = f" ({'; '.join(notes)})" if notes else ""
    return f"--- Turn {turn.number}{suffix} ---\n"


def _placed(
    turn: Turn,
) -> tuple[dict[int, list[Intervention]], dict[int, list[Intervention]], list[Intervention]]:
    """Return what the person did in a turn: by the message before which it was, by the call that
    it answers or refuses, and the rest, which was at the end.
    """
    calls = [call for message in turn.messages for call in message.calls]
    waiting = {
        "rejection": iter([call for call in calls if call.status == "rejected"]),
        "answer": iter([call for call in calls if call.action == "ask" and call.status == "ok"]),
    }
    before: dict[int, list[Intervention]] = {}
    by_call: dict[int, list[Intervention]] = {}
    rest: list[Intervention] = []
    for deed in turn.interventions:
        call = next(waiting[deed.kind], None) if deed.kind in waiting else None
        later = (
            message for message in turn.messages if deed.at and message.at and message.at > deed.at
        )
        if call is not None:
            by_call.setdefault(id(call), []).append(deed)
        elif message := next(later, None):
            before.setdefault(id(message), []).append(deed)
        else:
            rest.append(deed)
    return before, by_call, rest


def _of_deeds(deeds: Iterable[Intervention]) -> list[Observation]:
    return [part for deed in deeds for part in _deed(deed)]


def _deed(deed: Intervention) -> Iterator[Observation]:
    if is_of_program(deed):
        yield _labelled("command", "[SYSTEM] the person works their program", deed.text)
        return
    said = shortened(deed.text, *PASTE) or "(in silence)"
    yield _labelled("intervention", f"[USER] {deed.kind}", said)
    if deed.expansion:
        yield _expanded(deed.expansion)


def _expanded(text: str) -> Observation:
    return _labelled("command", "[SYSTEM] what the command says", shortened(text, *EXPANSION))


def _texts_of(call: ToolCall) -> str:
    return "\n".join(value for value in arguments(call).values() if isinstance(value, str))


def _within(parts: Sequence[Observation], budget: int) -> Iterator[Observation]:
    """Yield the first and the last observations, half of the budget each."""
    half = budget // 2
    trimmed = [Observation(p.kind, _trimmed(p.text, half // 2)) for p in parts]
    sizes = [len(part.text) for part in trimmed]
    first = _fitting(sizes, half)
    last = _fitting(reversed(sizes[first:]), half)
    yield from trimmed[:first]
    left_out = len(trimmed) - first - last
    if left_out:
        yield Observation("subagent", f"({left_out} observations left out)\n")
    yield from trimmed[len(trimmed) - last :]


def _trimmed(text: str, most: int) -> str:
    """Return a part that is not longer; its first line is its label."""
    return finish(shortened(text, most * 2 // 3, most // 3))


def _fitting(sizes: Iterable[int], budget: int) -> int:
    return sum(size <= budget for size in accumulate(sizes))


def _labelled(kind: str, label: str, text: str) -> Observation:
    head = finish(" ".join(label.split()))
    body = defuse(text.strip("\n"))
    return Observation(kind, f"{head}\n{body}\n" if body else f"{head}\n")


def _places(session: Session) -> tuple[dict[int, list[Subagent]], dict[int, list[Subagent]]]:
    """Return the subagents by the identity of their call, and the others by index of turn."""
    by_call: dict[int, list[Subagent]] = {}
    by_turn: dict[int, list[Subagent]] = {}
    if not session.subagents or not session.turns:
        return by_call, by_turn
    calls = [call for turn in session.turns for message in turn.messages for call in message.calls]
    ids = {call.id: call for call in calls}
    prompts: dict[str, list[ToolCall]] = {}
    for call in calls:
        if prompt := _prompt_of(call):
            prompts.setdefault(prompt, []).append(call)
    for subagent in session.subagents:
        same_prompt = prompts.get(subagent.prompt.strip(), [])
        found = ids.get(subagent.call_id) or ids.get(subagent.id)
        if found is None and same_prompt:
            found = same_prompt.pop(0)
        if found is None:
            found = next((call for call in calls if _names(call, subagent.id)), None)
        if found is not None:
            by_call.setdefault(id(found), []).append(subagent)
        else:
            by_turn.setdefault(_turn_at(session, subagent), []).append(subagent)
    return by_call, by_turn


def _prompt_of(call: ToolCall) -> str:
    if '"prompt"' not in call.input:
        return ""
    try:
        given = json.loads(call.input)
    except (ValueError, RecursionError):
        return ""
    prompt = given.get("prompt") if isinstance(given, dict) else None
    return mend_text(prompt).strip() if isinstance(prompt, str) else ""


def _names(call: ToolCall, subagent_id: str) -> bool:
    return len(subagent_id) >= 6 and (
        subagent_id in call.input or subagent_id in (call.result or "")
    )


def _turn_at(session: Session, subagent: Subagent) -> int:
    began = next((message.at for message in subagent.messages if message.at), None)
    latest = [
        index
        for index, turn in enumerate(session.turns)
        if began is not None and (turn.at is None or turn.at <= began)
    ]
    return latest[-1] if latest else len(session.turns) - 1
