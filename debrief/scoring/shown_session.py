"""What a model is shown of a session: its task, a chunk, and the signals that rules see in it.

Signals are computed, and say so. They come last, right before the model answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from debrief.markdown import counted, shorten
from debrief.models.fencing import defuse, defuse_line
from debrief.scoring.model import Chunk, Trace
from debrief.scoring.shortening import shortened
from debrief.scoring.traces import (
    TASK_AGAIN,
    is_of_program,
    task_context,
    trace_text,
    words_of_person,
)
from debrief.sessions.model import Evidence, Session
from debrief.signals.extract import session_signals
from debrief.signals.schema import OF_OTHER_LINES, Change, CheckSignal, Ending, SessionSignals

_QUOTE, _NAMED = 160, 8
_LAST_WORDS = (700, 300)
_FAR = 12_000
"""Characters behind the person's last words from which on they are shown once more."""
NO_CHECK = "- No check is seen among the commands; those of a hook are not looked for."
_ENDINGS: dict[Ending, str] = {
    "open": "it ends without a closing answer",
    "refused": "the person refused the only change",
    "interrupted": "the person stopped the work",
    "limit": "the agent's program stopped it",
}


def shown_text(session: Session, chunk: Chunk) -> str:
    """Return all that is shown of a session, made safe: the chunk's traces, the signals, and, where
    the traces do not show it, the task and what else the person said.

    It goes into one block, and its headings are such that no text of a session has one like them.
    """
    task = "" if _shows_task(session, chunk) else task_context(session)
    is_end = chunk.index == chunk.count - 1
    traces = "".join(_traces(chunk.traces))
    parts = {
        "What the task is": defuse(shortened(task, *TASK_AGAIN)),
        "What the person said": words_of_person(session) if chunk.count > 1 else "",
        "Repeated for context": "".join(_traces(chunk.overlap)),
        "To be scored": traces,
        "Signals": signals_text(session),
        "The person's last words": _last_words(session, traces) if is_end else "",
    }
    return "\n\n".join(f"### {name}\n\n{text.rstrip()}" for name, text in parts.items() if text)


def signals_text(session: Session) -> str:
    """Return the signals of a whole session, one a line, each with its evidence."""
    signals = session_signals(session)
    minutes = (session.ended - session.started).total_seconds() / 60
    preamble = any(turn.number == 0 and turn.messages for turn in session.turns)
    known = {
        "Tool": f"{session.tool} {session.tool_version}".strip(),
        "Human turns": f"{session.prompt_count}"
        + ("; turn 0 is work without a prompt" if preamble else ""),
        "Duration, pauses included": counted(round(minutes), "minute") if minutes else "",
        "Calls": f"{signals.calls}, of which {signals.failed_calls} failed"
        if signals.calls
        else "",
        "Kind of work": signals.work,
        "Changed": _changed(signals.change),
        "Commits and pushes": _places(signals.change.commits),
        **{
            event.kind.replace("_", " "): _places(event.evidence)
            for event in signals.events
            if event.kind not in OF_OTHER_LINES
        },
        "Words that approve": _places(signals.approvals),
    }
    lines = [f"- {name}: {defuse_line(value)}" for name, value in known.items() if value]
    lines += [_check(check, signals) for check in signals.checks] or [NO_CHECK]
    if ending := _ENDINGS.get(signals.ending):
        quote = f": “{signals.end.quote}”" if signals.end is not None and signals.end.quote else ""
        lines.append(f"- {defuse_line(f'How it ends: {ending}{quote}')}")
    return "\n".join(["(computed; the recording wins)", *lines])


def _shows_task(session: Session, chunk: Chunk) -> bool:
    first = next((turn.number for turn in session.turns if turn.number > 0), None)
    shown = (*chunk.overlap, *chunk.traces)
    return any(trace.number == first and not trace.continued for trace in shown)


def _traces(traces: Iterable[Trace]) -> Iterator[str]:
    """Yield the traces as text; what was cut inside its text is made safe once more: a line may
    begin where none did before.
    """
    shown: int | None = None
    for trace in traces:
        if trace.continued and trace.number != shown:
            yield f"--- Turn {trace.number}, continued ---\n"
        shown = trace.number
        parts = (
            replace(part, text=defuse(part.text)) if part.continued else part
            for part in trace.observations
        )
        yield trace_text(replace(trace, observations=tuple(parts)))


def _places(places: Sequence[Evidence]) -> str:
    """Return how many there are, and where the first ones stand; empty for none."""
    shown = [
        f"turn {place.turn}" + (f": “{shorten(place.quote, _QUOTE)}”" if place.quote else "")
        for place in places[: _NAMED // 2]
    ]
    more = [f"and {len(places) - len(shown)} more"] if len(places) > len(shown) else []
    return f"{len(places)} ({'; '.join([*shown, *more])})" if places else ""


def _changed(change: Change) -> str:
    """Return what was changed; nothing of what is not known."""
    is_one = bool(change.counted) and len(change.commits) == 1
    parts = [
        f"{counted(len(change.files), 'file')} ({_named(change.files)})" if change.files else "",
        f"deleted {_named(change.deleted)}" if change.deleted else "",
        f"by commands: {_named(change.commands)}" if change.commands else "",
        f"git counted {counted(change.counted or 0, 'file')} in the commit" if is_one else "",
    ]
    return "; ".join(filter(None, parts)) or ("" if change else "no change is seen")


def _named(names: Sequence[str]) -> str:
    more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*(shorten(name, _QUOTE) for name in names[:_NAMED]), *more])


def _check(check: CheckSignal, signals: SessionSignals) -> str:
    outcome = {True: "passed", False: "failed", None: "outcome not known"}[check.passed]
    numbers = {"ran": check.ran, "failed": check.failed, "skipped": check.skipped}
    counts = [f"{number} {what}" for what, number in numbers.items() if number is not None]
    parts = [outcome, ", ".join(counts)]
    if check.worth == "fixed_test":
        parts.append("it failed before")
    if check.evidence.quote:
        parts.append(f"it printed “{shorten(check.evidence.quote, _QUOTE)}”")
    if signals.change:
        covers = "after the last edit of what it looks at"
        parts.append(covers if check.covers_change else "it says nothing of the last change")
    where = f" in {check.target}" if check.target else ""
    what = f"Last {check.kind} ({check.tool}{where}), turn {check.evidence.turn}"
    return f"- {defuse_line(what)}: {defuse_line('; '.join(filter(None, parts)))}"


def _last_words(session: Session, traces: str) -> str:
    """Return the person's last words, quoted; empty where they stand near the end anyway."""
    said = [
        (turn.number, text.strip())
        for turn in session.turns
        for text in (
            turn.prompt,
            *(deed.text for deed in turn.interventions if not is_of_program(deed)),
        )
        if text.strip()
    ]
    if len(said) < 2:
        return ""
    turn, text = said[-1]
    begin = defuse(text).split("\n")[0][:200]
    if begin in traces[-_FAR:] or len(traces) <= _FAR:
        return ""
    words = defuse(shortened(text, *_LAST_WORDS)).split("\n")
    return "\n".join([f"(turn {turn})", *(f"> {line}" for line in words)])
