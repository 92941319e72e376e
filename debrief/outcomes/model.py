"""Labels: what is known of sessions from outside, and which of it says whether one succeeded.

A label is a session, the name of what is labelled, and a value. People name judges, dimensions
(``overall_quality`` included, also called ``score``) and rubrics: a rubric's key, with its score
name and a slash before it where several score names share it. Everybody may name ``success``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal, get_args

from msgspec import Struct

Source = Literal[
    "benchmark",
    "person",
    "view",
    "csv",
    "langfuse",
    "ci",
    "revert",
    "pull-request",
    "survival",
    "attribution",
    "commit",
    "check",
]
"""The first one that says something decides whether a session succeeded; people's are one.
``person``: a ``human_feedback.md``. ``view``: given on a page of ``debrief view``. ``check``: the
session's own last check."""
ALL_SOURCES: tuple[Source, ...] = get_args(Source)
PEOPLE: frozenset[Source] = frozenset(["person", "view", "csv", "langfuse"])
SUCCESS = "success"
UNSURE = "unsure"
"""Of success: a person looked and cannot say."""
YES = frozenset({"yes", "true", "good", "pass", "passed", "up", "👍", "✅"})
NO = frozenset({"no", "false", "bad", "fail", "failed", "down", "👎", "❌"})
_OF_COMPLETION = {"complete": True, "exceeded": True, "partial": False}
_SUCCEEDED = 0.5
"""Number from which a person's is a success."""


class Label(Struct, frozen=True, kw_only=True):
    """One thing that is known of one session: a row of the table of labels."""

    session_id: str
    """As given: a session's id, or a plan's, which stands for the latest session of it."""
    name: str
    value: str
    """As given; of an outcome ``yes``, ``no``, or what is not decided yet, such as ``open``."""
    source: Source
    detail: str = ""
    """What an outcome was seen by; a person's note."""
    rater: str = ""
    origin: str = ""
    """The file, server or repository that it was read from."""
    line: int = 0
    """Of the file; 0 where it has none."""
    task: str = ""
    """The benchmark's task, which several sessions may have been on; empty when nobody says."""
    family: str = ""
    """The agent and the kind of task, where a benchmark's labels say."""
    kind: str = ""
    """``coding``, or another kind of work; empty when nobody says."""
    observed_at: datetime | None = None
    loose: bool = False
    """Read out of free text: not a label at all unless its name is known."""

    @property
    def seen(self) -> datetime:
        """Return when it was seen; a label without a time comes before all that have one."""
        return self.observed_at or datetime.min.replace(tzinfo=UTC)

    @property
    def place(self) -> str:
        """Return where it was read: a file with its line, or a server."""
        return f"{self.origin}:{self.line}" if self.line else self.origin


def outcome(
    session_id: str,
    source: Source,
    value: bool | str,
    detail: str,
    origin: str,
    observed_at: datetime | None,
    task: str = "",
) -> Label:
    """Return what became of a session's work as a label."""
    said = value if isinstance(value, str) else "yes" if value else "no"
    return Label(
        session_id=session_id,
        name=SUCCESS,
        value=said,
        source=source,
        detail=detail,
        origin=origin,
        task=task,
        observed_at=observed_at,
    )


class Labels(Struct, frozen=True, kw_only=True):
    """What was read, and what could not be."""

    labels: tuple[Label, ...] = ()
    problems: tuple[str, ...] = ()
    """Each names its place and its reason."""
    read: Mapping[Source, frozenset[str]] = {}
    """By source, what was read whole: files and servers, or the ids of the sessions whose outcome
    was looked for. What was known from there before no longer holds."""


def joined(parts: Iterable[Labels]) -> Labels:
    """Return the labels of several sources as one."""
    found = list(parts)
    read: dict[Source, frozenset[str]] = {}
    for part in found:
        for source, places in part.read.items():
            read[source] = read.get(source, frozenset()) | places
    return Labels(
        labels=tuple(label for part in found for label in part.labels),
        problems=tuple(problem for part in found for problem in part.problems),
        read=read,
    )


def success_of(label: Label) -> bool | None:
    """Return whether a label says that its session succeeded; None when it says neither.

    Read are labels named ``success`` (yes or no in any of the ways that are taken for labels, or
    a number from 0 to 1) and people's of ``task_completion``.
    """
    if label.name.casefold() not in (SUCCESS, "task_completion"):
        return None
    said = label.value.strip().casefold()
    if said in YES or said in NO:
        return said in YES
    try:
        number = float(said)
    except ValueError:
        return _OF_COMPLETION.get(said)
    return number >= _SUCCEEDED if 0 <= number <= 1 else None
