"""What a model is shown of a session: its task, what is known of it, a chunk, and the end again.

Facts are computed, and say so. A check has passed only where its exit status or a known line
says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from posixpath import join, normpath

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
from debrief.sessions.model import Evidence, Session, calls_of
from debrief.sessions.readers.patches import edits_of_call
from debrief.signals.check_commands import ANY, CheckRun
from debrief.signals.extract import Facts, extract_signals
from debrief.signals.termination import End

_COMMAND, _QUOTE, _NAMED = 160, 160, 8
_LAST_WORDS, _CLOSING = (700, 300), (1_400, 800)
_WRITERS = frozenset(["patch", "apply_patch"])
"""Programs that write files which only their input names."""
_STAT = " changed, "
"""Stands in the line with which git says how much a commit changed."""
NO_CHECK = "- No command is known as a check. Checks of a hook are not among them."
_BREAKS = {
    "open": "The recording ends without a closing answer",
    "interrupted": "The person stopped the work at the end",
    "limit": "The agent's program stopped it at the end",
}


def shown_text(session: Session, chunk: Chunk) -> str:
    """Return all that is shown of a session, made safe: facts, the chunk's traces, and, where they
    do not show it, the task and what else the person said.

    It goes into one block, and its headings are such that no text of a session has one like them.
    """
    task = "" if _shows_task(session, chunk) else task_context(session)
    parts = {
        "What the task is": defuse(shortened(task, *TASK_AGAIN)),
        "What the person said": words_of_person(session) if chunk.count > 1 else "",
        "Facts": session_facts(session),
        "Repeated for context": "".join(_traces(chunk.overlap)),
        "To be scored": "".join(_traces(chunk.traces)),
    }
    return "\n\n".join(f"### {name}\n\n{text.rstrip()}" for name, text in parts.items() if text)


def session_facts(session: Session) -> str:
    """Return what is known of a session beside its text, one fact a line."""
    facts = extract_signals(session)
    minutes = (session.ended - session.started).total_seconds() / 60
    preamble = any(turn.number == 0 and turn.messages for turn in session.turns)
    known = {
        "Session": session.id,
        "Tool": f"{session.tool} {session.tool_version}".strip(),
        "Models": ", ".join(session.models) or "unknown",
        "Repository": session.repository or "unknown",
        "Human turns": f"{session.prompt_count}"
        + ("; turn 0 is work without a prompt" if preamble else ""),
        "Duration, pauses included": counted(round(minutes), "minute") if minutes else "unknown",
        "Calls": f"{facts.calls}{', subagents included' if session.subagents else ''}",
        "Calls that failed": _failed(session, facts),
        "Calls that the person refused": _places(facts.rejections),
        "Interruptions by the person": _places(facts.interruptions),
        "Files that the agent changed": _files(session, facts),
        "Commits and pushes": "; ".join(_published(session, facts)),
        "Assertions of older tests that were rewritten": _places(facts.rewritten),
        "Files that were removed": _places(facts.deleted),
        "Files that the agent made and removed again": _places(facts.taken_back),
        "Subagents": str(len(session.subagents) or ""),
        "Compactions": str(session.compactions or ""),
        "Checks seen among the commands": str(len(facts.checks)),
    }
    lines = [f"- {name}: {defuse_line(value)}" for name, value in known.items() if value]
    return "\n".join(
        ["(computed, and may be wrong: the recording wins)", *lines, *_last_checks(facts)]
    )


def end_once_more(session: Session) -> str:
    """Return how a session ends, made safe: the person's last words, the last check of each kind,
    what breaks off, and the closing answer.

    It is for the end of a prompt: models read the middle of a long one less well.
    """
    facts = extract_signals(session)
    parts = [*_last_words(session), *(_last_checks(facts) or [NO_CHECK])]
    parts += _broken_off(facts.end)
    closing = next(
        (
            (turn.number, message.text)
            for turn in reversed(session.turns)
            for message in reversed(turn.messages)
            if message.text.strip()
        ),
        None,
    )
    if closing is not None:
        turn, text = closing
        parts.append(f"- The agent's last words (turn {turn}):")
        parts.append(_quoted(shortened(text.strip(), *_CLOSING)))
    return "\n".join(parts)


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
        f"turn {place.turn}: {shorten(place.quote, _QUOTE).rstrip(': ')}"
        for place in places[: _NAMED // 2]
    ]
    more = [f"and {len(places) - len(shown)} more"] if len(places) > len(shown) else []
    return f"{len(places)} ({'; '.join([*shown, *more])})" if places else ""


def _failed(session: Session, facts: Facts) -> str:
    """Return how many calls failed, as the recording marks them, and those that are no answer."""
    failed = sum(call.status == "failed" or bool(call.exit_code) for call in calls_of(session))
    if failed <= len(facts.errors):
        return _places(facts.errors)
    less = (
        "without searches that found nothing, and checks that found a fault before the first edit"
    )
    return f"{failed}; {less}: {_places(facts.errors) or 0}"


def _files(session: Session, facts: Facts) -> str:
    """Return how many files were changed below the session's folder, and which elsewhere."""
    changed = dict.fromkeys(edit.quote for edit in facts.edits)
    commands = sorted(name for name in changed if name in _WRITERS or " " in name)
    folder = f"{session.cwd.rstrip('/')}/"
    whole = {normpath(join(session.cwd, name)) for name in changed if name not in commands}
    names = {path.removeprefix(folder) for path in whole}
    elsewhere = sorted(name for name in names if name.startswith(("/", "~", "../")))
    here = sorted(names.difference(elsewhere))
    parts = [f"{len(here)} below the session's folder ({_named(here)})"] if here else []
    if elsewhere:
        parts.append(f"{len(elsewhere)} elsewhere ({_named(elsewhere)})")
    if commands:
        parts.append(f"others by {_named(commands)}")
    if not parts:
        return "none is seen"
    edits = [edit for call in calls_of(session) for edit in edits_of_call(call)]
    lines = [edit for edit in edits if edit.path in changed]
    added, removed = sum(edit.added for edit in lines), sum(edit.removed for edit in lines)
    by_tools = f"editing tools added {added} lines and removed {removed}" if lines else ""
    return "; ".join(filter(None, [*parts, by_tools]))


def _named(names: Sequence[str]) -> str:
    more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])


def _published(session: Session, facts: Facts) -> Iterator[str]:
    """Yield each commit and push, with what git printed of its size."""
    results = {call.id: call.result or "" for call in calls_of(session)}
    for place in facts.published:
        lines = (line.strip() for line in results.get(place.call, "").split("\n"))
        stat = next((line for line in lines if _STAT in line), "")
        yield f"turn {place.turn}: {place.quote}" + (f" → {shorten(stat, _QUOTE)}" if stat else "")


def _last_checks(facts: Facts) -> list[str]:
    """Return the last check of each kind and language, in the order in which they ran."""
    last = {(run.kind, run.languages): run for run in facts.checks}
    return [_check(run, facts) for run in sorted(last.values(), key=lambda run: run.place)]


def _check(run: CheckRun, facts: Facts) -> str:
    sharing = [check for check in facts.checks if check.place == run.place and check is not run]
    outcome = {True: "passed", False: "failed", None: "outcome not known"}[run.passed]
    if sharing:
        others = ", ".join(f"{check_run.kind} ({check_run.tool})" for check_run in sharing)
        outcome = f"{outcome} in one command with {others}"
    parts = [outcome]
    if run.exit_code is not None:
        parts.append(f"exit code {run.exit_code} of the command")
    if run.evidence.quote:
        parts.append(f"it printed “{run.evidence.quote}”")
    if ANY not in run.languages:
        parts.append(f"it looks at {', '.join(sorted(run.languages))}")
    if facts.last_edit >= 0:
        when = "before" if run.place < facts.last_edit else "after"
        parts.append(
            "in the call of the last edit"
            if run.place == facts.last_edit
            else f"{when} the last edit"
        )
    what = f"Last {run.kind} ({run.tool}), turn {run.evidence.turn}"
    command = shorten(run.command, _COMMAND)
    return f"- {defuse_line(f'{what}: `{command}`')}: {defuse_line('; '.join(parts))}"


def _last_words(session: Session) -> Iterator[str]:
    said = [
        (turn.number, text)
        for turn in session.turns
        for text in (
            turn.prompt,
            *(deed.text for deed in turn.interventions if not is_of_program(deed)),
        )
        if text.strip()
    ]
    if said:
        turn, text = said[-1]
        yield f"- The person's last words (turn {turn}):"
        yield _quoted(shortened(text.strip(), *_LAST_WORDS))


def _quoted(text: str) -> str:
    """Return words of the session so that no line of theirs can pass for one of ours."""
    return "\n".join(f"> {line}" for line in defuse(text).split("\n"))


def _broken_off(end: End) -> Iterator[str]:
    quote = f": {end.evidence.quote}" if end.evidence and end.evidence.quote else ""
    if end.ending != "closed":
        yield f"- {defuse_line(f'{_BREAKS[end.ending]}{quote}')}"
    if end.unanswered:
        yield "- The last prompt, commit or push has no answer in the recording."
