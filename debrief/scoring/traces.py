"""Traces: a session as the scorer is shown it, a turn with all its work being one trace.

Every observation's text carries its own label and line end, so a trace's text is its
observations' texts one after the other, and their token counts add up to its count. What comes
out of the session is made safe here already, before tokens are counted: look-alikes of our labels
are marked and invisible characters shown, both of which make text longer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from debrief.models.fencing import defuse, finish
from debrief.scoring.model import Observation, Trace
from debrief.sessions.model import Message, Session, Subagent, ToolCall, Turn

RESULT_HEAD = 1_500
RESULT_TAIL = 2_500
"""Characters of a result that are kept. The 500 of a session's rendering lose the end of a test
run, where it says what failed; the middle of a long listing says nothing about the work."""

SUBAGENT_BUDGET = 24_000
"""Characters of one subagent's work that are shown, about 6,000 tokens: it is scored with the
turn that asked for it and must not crowd out the turn's own work."""


def traces_of(session: Session) -> list[Trace]:
    """Return the session's traces in order, the preamble included when there is one.

    A subagent's work follows the call that started it. What started it is known by its id or its
    prompt in the call, else by the time; otherwise it follows the last turn's work.
    Of a session that only its subagents' work is left of, that is the one trace, with number 0.
    """
    if not session.turns and session.subagents:
        work = [part for subagent in session.subagents for part in _subagent(subagent)]
        return [Trace(number=0, observations=tuple(work))]
    started_by, by_turn = _places(session)
    return [
        Trace(
            number=turn.number,
            observations=tuple(_observations(turn, started_by, by_turn.get(index, ()))),
        )
        for index, turn in enumerate(session.turns)
    ]


def trace_text(trace: Trace) -> str:
    """Return a trace as text; each observation starts on a line of its own."""
    return "".join(
        part.text if part.text.endswith("\n") or not part.text else f"{part.text}\n"
        for part in trace.observations
    )


def task_context(session: Session) -> str:
    """Return the first human message; empty when the session has none."""
    return next((turn.prompt for turn in session.turns if turn.number > 0), "")


def shortened(text: str, head: int, tail: int) -> str:
    """Return ``text`` with its middle left out, and how much of it, when it is too long."""
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    end = text[len(text) - tail :] if tail else ""
    return f"{text[:head]}\n... ({left_out} characters left out)\n{end}"


def _observations(
    turn: Turn, started_by: dict[int, list[Subagent]], loose: Sequence[Subagent]
) -> Iterator[Observation]:
    yield Observation("turn", _headline(turn))
    if turn.prompt or turn.images:
        pictures = f"\n({turn.images} pictures attached)" if turn.images else ""
        yield _labelled("prompt", "[USER]", f"{turn.prompt}{pictures}")
    for message in turn.messages:
        yield from _message(message, started_by)
    for intervention in turn.interventions:
        yield _labelled("intervention", f"[USER] {intervention.kind}", intervention.text)
    for subagent in loose:
        yield from _subagent(subagent)


def _headline(turn: Turn) -> str:
    name = f"Turn {turn.number}" if turn.number else "Before the first prompt"
    compacted = " (the conversation was compacted)" if turn.compacted else ""
    return f"--- {name}{compacted} ---\n"


def _message(message: Message, started_by: dict[int, list[Subagent]]) -> Iterator[Observation]:
    if message.text.strip():
        yield _labelled("message", "[ASSISTANT]", message.text)
    for call in message.calls:
        yield from _call(call)
        for subagent in started_by.get(id(call), ()):
            yield from _subagent(subagent)


def _call(call: ToolCall) -> Iterator[Observation]:
    yield _labelled("call", f"[TOOL_CALLS] {call.name}", call.input)
    if call.result is None:
        yield _labelled("result", "[TOOL_RESULTS] none", "")
        return
    code = "" if call.exit_code is None else f", exit code {call.exit_code}"
    growth = f", +{call.added} -{call.removed} lines" if call.added or call.removed else ""
    label = f"[TOOL_RESULTS] {call.status}{code}{growth}"
    yield _labelled("result", label, shortened(call.result, RESULT_HEAD, RESULT_TAIL))


def _subagent(subagent: Subagent) -> Iterator[Observation]:
    name = " ".join(filter(None, (subagent.type, subagent.description))) or subagent.id
    yield _labelled("subagent", f"[SUBAGENTS] {name}", shortened(subagent.prompt, 2_000, 0))
    shown = [part for message in subagent.messages for part in _message(message, {})]
    for part in _within_budget(shown):
        yield Observation("subagent", f"[SUBAGENTS] {part.text}")
    yield Observation("subagent", "[SUBAGENTS] end\n")


def _within_budget(parts: Sequence[Observation]) -> Iterator[Observation]:
    """Yield the first and the last observations, half of the budget each."""
    half = SUBAGENT_BUDGET // 2
    trimmed = [Observation(p.kind, shortened(p.text, half // 2, half // 2)) for p in parts]
    first = _fitting(trimmed, half)
    last = _fitting(reversed(trimmed[first:]), half)
    yield from trimmed[:first]
    left_out = len(trimmed) - first - last
    if left_out:
        yield Observation("subagent", f"({left_out} observations left out)\n")
    yield from trimmed[len(trimmed) - last :]


def _fitting(parts: Iterable[Observation], budget: int) -> int:
    sizes = accumulate(len(part.text) for part in parts)
    return sum(size <= budget for size in sizes)


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
    return prompt.strip() if isinstance(prompt, str) else ""


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
