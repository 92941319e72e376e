"""The scoring prompt: what a language model is shown of one chunk, and asked about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import orjson
from msgspec.structs import replace

from debrief.models import fencing
from debrief.models.fencing import defuse, defuse_line
from debrief.models.templates import SCORER, load_template, render
from debrief.scoring.dimensions import DIMENSIONS, Dimension
from debrief.scoring.model import Chunk, Trace
from debrief.scoring.traces import shortened, task_context, trace_text
from debrief.sessions.model import Session

Fence = Callable[[str], str]
"""Puts text from a session between markers that it cannot contain."""

_TASK_HEAD, _TASK_TAIL = 6_000, 2_000


def scoring_prompt(session: Session, chunk: Chunk, fence: Fence | None = None) -> str:
    """Return the prompt for one chunk of a session.

    Args:
        session: whose task and facts every part's prompt carries.
        chunk: the part to be scored.
        fence: what puts text that was made safe between markers; a random one each time by
            default.
    """
    fence = fence or fencing.fence
    values = {
        "data": fence(shown_text(session, chunk)),
        "part": _part(chunk),
        "criteria": criteria_text(),
        "form": _form(),
    }
    return render(load_template(SCORER), values)


def shown_text(session: Session, chunk: Chunk) -> str:
    """Return all that is shown of a session, made safe: task, facts and the chunk's traces.

    It goes into one block, and its headings are such that no text of a session has one like them.
    """
    task = defuse(shortened(task_context(session), _TASK_HEAD, _TASK_TAIL))
    parts = {
        "What the task is": task or "(there is no human message)",
        "Facts": session_facts(session),
        "Repeated for context": "".join(_traces(chunk.overlap)),
        "To be scored": "".join(_traces(chunk.traces)),
    }
    return "\n\n".join(f"### {name}\n\n{text.rstrip()}" for name, text in parts.items() if text)


def session_facts(session: Session) -> str:
    """Return what is known of a session beside its text, one fact a line."""
    minutes = (session.ended - session.started).total_seconds() / 60
    facts = {
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
    }
    return "\n".join(f"- {name}: {defuse_line(value)}" for name, value in facts.items())


@cache
def criteria_text() -> str:
    """Return the six dimensions with the anchors of every value."""
    return "\n\n".join(_criterion(dimension) for dimension in DIMENSIONS)


def _part(chunk: Chunk) -> str:
    if chunk.count == 1:
        return "The whole session."
    which = f"Part {chunk.index + 1} of {chunk.count} of the session."
    where = {
        0: "It begins here and goes on in the next part, so judge what was reached so far.",
        chunk.count - 1: "It ends here; the parts before are scored on their own.",
    }.get(chunk.index, "It began before and goes on after, so judge what is seen here.")
    return f"{which} {where}"


def _traces(traces: Iterable[Trace]) -> list[str]:
    lines = []
    shown: int | None = None
    for trace in traces:
        if trace.continued and trace.number != shown:
            lines.append(f"--- Turn {trace.number}, continued ---\n")
        shown = trace.number
        lines.append(trace_text(_defused_again(trace)))
    return lines


def _defused_again(trace: Trace) -> Trace:
    """Make what was cut inside its text safe once more: a line may begin where none did before."""
    parts = (
        replace(part, text=defuse(part.text)) if part.continued else part
        for part in trace.observations
    )
    return replace(trace, observations=tuple(parts))


def _criterion(dimension: Dimension) -> str:
    kind = "one of these categories" if dimension.kind == "categorical" else "a number from 0 to 1"
    anchors = "\n".join(f"- {a.label or a.value}: {a.text}" for a in dimension.anchors)
    return f"### {dimension.name} ({kind})\n{dimension.question}\n{anchors}"


def _form() -> str:
    example = {
        dimension.name: {
            "score": (
                " | ".join(anchor.label for anchor in dimension.anchors)
                if dimension.kind == "categorical"
                else "a number from 0 to 1"
            ),
            "rationale": "... (turn n)",
        }
        for dimension in DIMENSIONS
    }
    return orjson.dumps(example, option=orjson.OPT_INDENT_2).decode()
