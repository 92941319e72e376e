"""A session as plain text for a model: one trace a turn, subagents included.

Every observation's text carries its own label and line end, so a trace's text and tokens are those
of its observations added up. What comes out of the session is made safe before tokens are counted:
look-alikes of our labels are marked and invisible characters shown, both of which make text longer.

The person's words, the files that their first request names, what the agent said and how checks
ended are shown whole, but for huge pastes;
all else by how much it tells (``shown_calls``). What the person did inside a turn stands where it
happened. Text that was shown once (a plan that is asked for again) is not shown again. Of a session
that is long even so, the middle is an outline, before it is split.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from debrief.markdown import shorten
from debrief.models.fencing import defuse, finish
from debrief.scoring.model import Observation, Trace
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
from debrief.signals.check_commands import CheckRun
from debrief.signals.excerpts import label
from debrief.signals.extract import extract_signals
from debrief.signals.request import spelled_out
from debrief.signals.shell import arguments

FORM: Final = 5
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
SUBAGENT_BUDGET, SUBAGENT_DIFF = 8_000, 800
"""Characters of a subagent's work, and of one edit in it, that are shown beside its report."""
OUTLINED_FROM = 110_000
"""Characters from which on the middle of a session is an outline: about 30,000 tokens."""
_BEGINNING, _ENDING = 20_000, 45_000
"""Characters of such a session that are shown as of any other."""
_REPEATED = 600
"""Characters from which on a text is worth looking for again."""
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
        work = [part for subagent in session.subagents for part in writer.subagent(subagent, FULL)]
        return [Trace(number=0, observations=tuple(work))]
    return writer.traces()


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


_OTHERS, _PROGRAM = 1_500, 200
"""Characters of a text in the model's request that no person wrote: what a command, a task or a
hook said bears on the work, and the program's lists and reminders hardly do."""


class _Writer:
    """Writes a session down, once from its first to its last message."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._first = next((turn.number for turn in session.turns if turn.number > 0), 0)
        self._known: list[tuple[str, int]] = []
        """Long texts that were shown, and in which turn."""
        self._said: dict[int, str] = {}
        """What is shown of a text that may stand elsewhere too, by its owner."""
        self._todos: dict[str, str] = {}
        """The list of things to do as it was shown last: what, and how far it is."""
        self._deeds: dict[int, list[Intervention]] = {}
        """What the person did to a call."""
        self._checks: dict[str, list[CheckRun]] = {}
        for run in extract_signals(session).checks:
            if run.evidence.call:
                self._checks.setdefault(run.evidence.call, []).append(run)
        self._started_by, self._loose = _places(session)

    def traces(self) -> list[Trace]:
        """Return the traces; see ``traces_of``."""
        turns = [self._pieces(index, turn) for index, turn in enumerate(self._session.turns)]
        sizes = [sum(len(part.text) for part in piece.parts) for row in turns for piece in row]
        outlined = _middle(sizes)
        traces, at = [], 0
        for turn, pieces in zip(self._session.turns, turns, strict=True):
            shown: list[Observation] = []
            for piece in pieces:
                if at in outlined and piece.message is not None:
                    closing = piece.message is turn.messages[-1]
                    shown += self._message(turn.number, piece.message, OUTLINE, closing)
                else:
                    shown += piece.parts
                at += 1
            traces.append(Trace(number=turn.number, observations=tuple(shown)))
        return traces

    def _pieces(self, index: int, turn: Turn) -> list[_Piece]:
        opening = [Observation("turn", _headline(index, turn))]
        if turn.prompt or turn.images:
            pictures = f"\n({turn.images} pictures attached)" if turn.images else ""
            room = REQUEST if turn.number == self._first else PASTE
            prompt = shortened(self._once(turn, turn.prompt, turn.number), *room)
            opening.append(_labelled("prompt", "[USER]", f"{prompt}{pictures}"))
        if turn.expansion:
            opening.append(_expanded(turn.expansion))
        before, by_call, behind = _placed(turn)
        self._deeds.update(by_call)
        pieces = [_Piece(None, opening)]
        for message in turn.messages:
            pieces.append(_Piece(None, _of_deeds(before.get(id(message), ()))))
            closing = message is turn.messages[-1]
            pieces.append(_Piece(message, self._message(turn.number, message, FULL, closing)))
        loose = self._loose.get(index, ())
        work = [part for subagent in loose for part in self.subagent(subagent, FULL)]
        return [*pieces, _Piece(None, [*_of_deeds(behind), *work])]

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
            text = message.text if closing else shortened(message.text, *rooms.message)
            parts.append(_labelled("message", "[ASSISTANT]", text))
        for call in message.calls:
            parts += self._call(turn, call, rooms)
            parts += _of_deeds(self._deeds.get(id(call), ()))
            for subagent in self._started_by.get(id(call), ()):
                parts += self.subagent(subagent, rooms, call)
        return parts

    def _call(self, turn: int, call: ToolCall, rooms: Rooms) -> Iterator[Observation]:
        checks = self._checks.get(call.id, ())
        name, text = call_shown(call, rooms, self._session.cwd)
        if call.action == "plan":
            text = self._plan(call, turn) or text
        elif call.path and call.path.endswith(".md"):
            text = self._once(call, text, turn, _added(call)) or text
        yield _labelled("call", f"[TOOL_CALLS] {name}", text)
        shown = result_shown(call, rooms, checks)
        yield _labelled("result", f"[TOOL_RESULTS] {outcome_label(call, checks)}", shown)

    def _once(self, owner: object, text: str, turn: int, known_as: str = "") -> str:
        """Return a text without what was shown before in the session; its place says where.

        Args:
            owner: whose text it is: asked again, the answer is the same.
            text: as it is shown.
            turn: that it belongs to.
            known_as: the text by which it may be known, where it is shown in another form.
        """
        if id(owner) in self._said:
            return self._said[id(owner)]
        plain = (known_as or text).strip()
        for known, where in self._known:
            if known in plain:
                again = f"({len(known)} characters that stand in turn {where} already)"
                text = again if known_as else text.replace(known, again)
                plain = plain.replace(known, again)
        if len(plain) >= _REPEATED:
            self._known.append((plain, turn))
        self._said[id(owner)] = text
        return text

    def _plan(self, call: ToolCall, turn: int) -> str:
        """Return a plan that is handed in, or what of a list of things to do is new or changed."""
        given = arguments(call)
        if isinstance(plan := given.get("plan"), str):
            return shortened(self._once(call, plan, turn), *PASTE)
        listed = next((given[key] for key in ("todos", "plan") if key in given), None)
        if not isinstance(listed, list) or id(call) in self._said:
            return self._said.get(id(call), "")
        items = [each for each in listed if isinstance(each, dict)]
        todos = {
            str(item.get("content") or item.get("step") or item): str(item.get("status", ""))
            for item in items
        }
        new = [
            f"[{state}] {what}" for what, state in todos.items() if self._todos.get(what) != state
        ]
        self._todos = todos
        self._said[id(call)] = "\n".join(new) or "(as before)"
        return self._said[id(call)]

    def subagent(
        self, subagent: Subagent, rooms: Rooms, call: ToolCall | None = None
    ) -> Iterator[Observation]:
        """Yield a subagent's task, its work in outline, and its report."""
        name = " ".join(filter(None, (subagent.type, subagent.description))) or subagent.id
        asked = "" if call and subagent.prompt.strip() in _texts_of(call) else subagent.prompt
        yield _labelled("subagent", f"[SUBAGENTS] {name}", shortened(asked, *rooms.arguments))
        *_, last = subagent.messages or (None,)
        report = last.text.strip() if last else ""
        work = [
            line
            for message in subagent.messages
            for line in self._outline(message, "" if message is last else message.text)
        ]
        budget = SUBAGENT_BUDGET if rooms is FULL else SUBAGENT_BUDGET // 5
        yield from _within(work, budget)
        if report and not (call and report[:_REPEATED] in (call.result or "")):
            yield _labelled("subagent", "[SUBAGENTS] report", shortened(report, *PASTE))
        yield Observation("subagent", "[SUBAGENTS] end\n")

    def _outline(self, message: Message, text: str) -> Iterator[Observation]:
        if text.strip():
            yield _labelled("subagent", "[SUBAGENTS] said", shorten(text, 200))
        for call in message.calls:
            outcome = outcome_label(call, self._checks.get(call.id, ()))
            work = shorten(call.command, 200) if call.command else label(call)
            diffs = "\n".join(file_edit.patch for file_edit in edits_shown(call))
            text = f"{work}\n{shortened(diffs, SUBAGENT_DIFF, 0)}" if diffs else work
            yield _labelled("subagent", f"[SUBAGENTS] {call.name}: {outcome}", text)


class _Piece(NamedTuple):
    """What is shown of a turn in one go; what is of a message could be shown shorter."""

    message: Message | None
    parts: list[Observation]


def _middle(sizes: Sequence[int]) -> frozenset[int]:
    """Return which pieces of a long session lie between its beginning and its end."""
    if sum(sizes) <= OUTLINED_FROM:
        return frozenset()
    first = _fitting(sizes, _BEGINNING)
    last = len(sizes) - _fitting(reversed(sizes), _ENDING)
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


def _added(call: ToolCall) -> str:
    """Return the text of a file that a call created; empty for any other edit."""
    if not call.patch.startswith("@@ -0,0"):
        return ""
    lines = call.patch.split("\n")[1:]
    return "\n".join(line[1:] for line in lines if line.startswith("+"))


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
