"""From the events of one or more transcripts to one session."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET

from debrief.sessions.declared import unique
from debrief.sessions.model import (
    DeclaredTool,
    Message,
    Problem,
    Session,
    Subagent,
    TranscriptRef,
    Turn,
    Usage,
)
from debrief.sessions.places import place_of
from debrief.sessions.readers.jsonl import JsonLines
from debrief.sessions.readers.timeline import NO_USAGE, Timeline, decoded_arguments

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_PROBLEMS = 100


class Facts:
    """What a transcript tells about its session as a whole; the first word on each counts."""

    def __init__(self) -> None:
        self.id = ""
        self.title = ""
        self.cwd = ""
        self.branch = ""
        self.repository = ""
        self.commit = ""
        """The repository's when the session began, as whole hex digits."""
        self.version = ""
        self.model = ""
        self.parent = ""
        """The session that started this one as its subagent; empty for a person's own."""
        self.is_subagent = False
        """Another agent began the session, whether its transcript is known or not."""
        self.parent_call = ""
        """The call that started it, where the transcript tells."""
        self.agent_type = ""
        self.started: datetime | None = None
        self.ended: datetime | None = None

    def see(self, at: datetime | None) -> None:
        """Take the first time as the start and the latest as the end."""
        if at is None:
            return
        if self.started is None:
            self.started = at
        if self.ended is None or at > self.ended:
            self.ended = at


class Reading:
    """One transcript on its way to a session, or to a part of one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.tool = ""
        """Where the transcript names another tool than its source's usual one."""
        self.facts = Facts()
        self.timeline = Timeline()
        self.problems: list[Problem] = []
        self.untold = 0
        """Problems beyond the first hundred."""
        self.references: list[TranscriptRef] = []
        self.settings: list[TranscriptRef] = []
        """Files beside the transcript that completed it."""
        self.declared: tuple[DeclaredTool, ...] = ()
        """The tools that the transcript describes, as they come."""
        self.orphan_results = 0
        self.child_calls: dict[str, str] = {}
        """The calls that started subagents, by the subagents' session ids."""
        self.agents: dict[str, Reading] = {}
        """Subagents whose messages stand among the session's own, by their ids."""
        self.usage: Usage | None = None
        """The tool's own account of the tokens, where it beats adding up the messages'."""
        self.inclusive_usage: Usage | None = None
        """The same with its subagents', which counts where their transcripts are not at hand."""
        self.api_calls: int | None = None
        """Where it is not the number of messages."""

    def take(self, lines: JsonLines) -> None:
        """Take over what reading the file found out about it; call it after the conversion."""
        self.references.append(lines.ref())
        self.problems += lines.problems

    def report(self, line: int, reason: str) -> None:
        """File a problem with a line of the transcript; 0 means the whole file."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(path=self.path, line=line, reason=reason))
        else:
            self.untold += 1


def subagent_of(child: Reading, parent: Reading) -> Subagent:
    """Return a child transcript as a subagent; what it was asked comes from its own prompts."""
    turns = child.timeline.build()
    call_id = child.facts.parent_call or parent.child_calls.get(child.facts.id, "")
    call = parent.timeline.calls.get(call_id)
    arguments = decoded_arguments(call.input) if call else {}
    return Subagent(
        id=child.facts.id,
        type=child.facts.agent_type or _first(arguments, "subagent_type", "agent_type", "agent"),
        description=_first(arguments, "description") or child.facts.title,
        prompt="\n\n".join(turn.prompt for turn in turns if turn.prompt)
        or _first(arguments, "prompt"),
        messages=tuple(message for turn in turns for message in turn.messages),
        place="file" if child.references else "inline",
    )


def read_lines(
    path: str, convert: Callable[[JsonLines, Reading], None], name_of: Callable[[str], str]
) -> Reading:
    """Read a file of JSON lines.

    Args:
        path: of the file.
        convert: takes over what the lines hold.
        name_of: gives the session's id by the path, for lines that do not tell it.

    Raises:
        OSError: it cannot be read.
    """
    reading = Reading(path)
    lines = JsonLines(path)
    convert(lines, reading)
    reading.take(lines)
    reading.facts.id = reading.facts.id or name_of(path)
    return reading


def assemble(
    reading: Reading,
    *,
    source: str,
    tool: str,
    fallback: datetime,
    children: Sequence[Reading] = (),
) -> Session:
    """Return the session of ``reading`` with its subagents' transcripts.

    A transcript of a subagent whose parent is not at hand is a session without human turns: its
    prompt was written by another agent, so all its work is a preamble.

    Args:
        fallback: the session's time when no record has one.
    """
    facts = reading.facts
    for part in (reading, *children):
        if part.orphan_results:
            part.report(0, f"{part.orphan_results} tool results without their calls")
        if part.untold:
            reason = f"{part.untold} more problems"
            part.problems.append(Problem(path=part.path, line=0, reason=reason))
    parts = (reading, *children)
    turns = reading.timeline.build()
    if facts.parent or facts.is_subagent:
        turns = _without_prompts(turns)
        whose = f"session {facts.parent}" if facts.parent else "another session"
        reading.report(0, f"a subagent's work for {whose}, whose transcript is not here")
    subagents = tuple(subagent_of(child, reading) for child in children)
    for child in children:
        facts.see(child.facts.started)
        facts.see(child.facts.ended)
    if facts.started is None:
        reading.report(0, "no record has a time: the file's own time stands in")
    started = facts.started or fallback
    place = place_of(facts.cwd, facts.repository)
    messages = [
        *(message for turn in turns for message in turn.messages),
        *(message for subagent in subagents for message in subagent.messages),
    ]
    calls = [call for message in messages for call in message.calls]
    return Session(
        id=facts.id,
        source=source,
        tool=reading.tool or tool,
        tool_version=facts.version,
        models=_by_use(messages),
        task=place.task,
        repository=place.repository,
        branch=facts.branch,
        cwd=facts.cwd,
        started=started,
        ended=facts.ended or started,
        title=facts.title,
        transcripts=tuple(ref for part in parts for ref in (*part.references, *part.settings)),
        turns=turns,
        subagents=subagents,
        usage=_usage(reading, children),
        api_calls=sum(_api_calls(part) for part in parts),
        slash_commands=reading.timeline.slash_commands,
        lines_added=sum(call.added for call in calls),
        lines_removed=sum(call.removed for call in calls),
        compactions=reading.timeline.compactions,
        problems=tuple(problem for part in parts for problem in part.problems),
        declared_tools=unique(reading.declared) or UNSET,
        notices=tuple(sorted(reading.timeline.notices)) or UNSET,
        base_commit=facts.commit if _COMMIT.fullmatch(facts.commit) else UNSET,
    )


def _usage(reading: Reading, children: Sequence[Reading]) -> Usage:
    if not children and reading.inclusive_usage is not None:
        return reading.inclusive_usage
    parts = (reading, *children)
    own = (part.timeline.usage if part.usage is None else part.usage for part in parts)
    return sum(own, NO_USAGE)


def _api_calls(reading: Reading) -> int:
    return reading.timeline.messages if reading.api_calls is None else reading.api_calls


def _without_prompts(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    if not turns:
        return turns
    ends = [turn.ended for turn in turns if turn.ended is not None]
    return (
        Turn(
            number=0,
            prompt="",
            origin="preamble",
            at=turns[0].at,
            ended=max(ends, default=None),
            messages=tuple(message for turn in turns for message in turn.messages),
            compacted=any(turn.compacted for turn in turns),
        ),
    )


def _by_use(messages: Iterable[Message]) -> tuple[str, ...]:
    counts = Counter(message.model for message in messages if message.model)
    return tuple(model for model, _ in counts.most_common())


def _first(arguments: dict[str, Any], *names: str) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return ""
