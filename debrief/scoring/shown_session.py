"""What a model is shown of a session: its task, what is known of it, and the text of a chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from debrief.models.fencing import defuse, defuse_line
from debrief.offline.facts import facts_of
from debrief.scoring.chunking import shortened, task_context, trace_text, words_of_person
from debrief.scoring.model import Chunk, Trace
from debrief.sessions.model import Session

_TASK_HEAD, _TASK_TAIL = 6_000, 2_000


def shown_text(session: Session, chunk: Chunk) -> str:
    """Return all that is shown of a session, made safe: task, facts and the chunk's traces; with
    a part, what the person said in the others too.

    It goes into one block, and its headings are such that no text of a session has one like them.
    """
    task = defuse(shortened(task_context(session), _TASK_HEAD, _TASK_TAIL))
    parts = {
        "What the task is": task or "(there is no human message)",
        "What the person said": words_of_person(session) if chunk.count > 1 else "",
        "Facts": session_facts(session),
        "Repeated for context": "".join(_traces(chunk.overlap)),
        "To be scored": "".join(_traces(chunk.traces)),
    }
    return "\n\n".join(f"### {name}\n\n{text.rstrip()}" for name, text in parts.items() if text)


def session_facts(session: Session) -> str:
    """Return what is known of a session beside its text, one fact a line."""
    facts = facts_of(session)
    minutes = (session.ended - session.started).total_seconds() / 60
    known = {
        "Session": session.id,
        "Tool": f"{session.tool} {session.tool_version}".strip(),
        "Models": ", ".join(session.models) or "unknown",
        "Repository": session.repository or "unknown",
        "Human turns": str(session.prompt_count),
        "Duration": f"{minutes:.0f} minutes",
        "Lines added and removed": f"+{session.lines_added} -{session.lines_removed}",
        "Tokens in and out": f"{session.usage.input} and {session.usage.output}",
        "Subagents": str(len(session.subagents)),
        "Compactions": str(session.compactions),
        "Checks run": str(len(facts.checks)),
        "Last check after the last edit": facts.last_check.shown if facts.last_check else "none",
        "Assertions of older tests that were rewritten": str(len(facts.rewritten)),
        "Files that were removed": str(len(facts.deleted)),
    }
    return "\n".join(f"- {name}: {defuse_line(value)}" for name, value in known.items())


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
