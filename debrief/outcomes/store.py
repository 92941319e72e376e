"""The table of labels, one partition for each source of labels.

A label is a session, the name of what is labelled, and a value. Everybody may name ``success``;
other names are a person's own, such as a dimension or a score name.

Of labels given on pages each person has a partition, so that no two machines write the same.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple, get_args

from msgspec import Struct, structs
from msgspec.structs import replace

from debrief.errors import LakeError
from debrief.files import locked
from debrief.keys import plain_name, slugify
from debrief.lake import Lake
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.readers.documents import plain_text

Source = Literal[
    "person",
    "view",
    "csv",
    "langfuse",
    "execution",
    "benchmark",
    "ci",
    "revert",
    "pull-request",
    "survival",
    "kept",
    "commit",
]
"""``execution``: its checks, run again before and after its change. ``person``: a
``human_feedback.md``. ``view``: given on a page of ``debrief view``. ``survival`` and ``kept``: of
the session's own lines. ``commit``: what the session says that it committed."""
ALL_SOURCES: tuple[Source, ...] = get_args(Source)
DECIDING: tuple[Source, ...] = tuple(source for source in ALL_SOURCES if source != "commit")
"""The sources that decide whether a session succeeded: the first one that says something does, and
people's are one. That something was committed says nothing of it."""
PEOPLE: frozenset[Source] = frozenset(["person", "view", "csv", "langfuse"])
SUCCESS = "success"
UNSURE = "unsure"
"""Of success: a person looked and cannot say."""
UNDECIDED = frozenset({UNSURE, "undetermined"})
"""What people write who cannot say."""
YES = frozenset({"yes", "true", "good", "pass", "passed", "up", "👍", "✅"})
NO = frozenset({"no", "false", "bad", "fail", "failed", "down", "👎", "❌"})
_OF_COMPLETION = {
    **{"complete": True, "complete_verified": True, "complete_unverified": True, "exceeded": True},
    **{"partial": False},
}
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
    blind: bool = False
    """Given without a score, verdict or review of the session in sight. Only such labels certify a
    reviewer."""
    loose: bool = False
    """Read out of free text: not a label at all unless its name is known."""

    def __post_init__(self) -> None:
        """Make every text one that can be kept and shown, whoever wrote it."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, str) and not value.isprintable():
                structs.force_setattr(self, name, plain_text(value))

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


def without_forgotten(labels: Labels, forgotten: Forgotten) -> Labels:
    """Return labels without those of sessions, and those by people, that were forgotten.

    Files and servers may still have them.
    """
    kept = (
        label
        for label in labels.labels
        if not (forgotten.session(label.session_id) or forgotten.person(label.rater))
    )
    return replace(labels, labels=tuple(kept)) if forgotten else labels


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


class LabelProblem(Struct, frozen=True, kw_only=True):
    """What could not be read of people's labels."""

    text: str
    """The place and the reason."""
    whole: bool = False
    """Nothing was read from there: a file that cannot be used."""


LABELS = "labels"
PROBLEMS = "label_problems"
"""A single partition, ``all``, anew whenever labels are gathered."""
ORDER = attrgetter("seen", "origin", "line", "session_id", "name", "rater", "detail")
"""The last word of several comes last."""


_WAIT = 30.0
"""Seconds for another writer on this machine to finish."""


@contextmanager
def only_label_writer(lake: Lake, home: Path) -> Iterator[None]:
    """Hold this machine's lock on the labels of its lakes: who writes some reads the others first.

    Args:
        lake: with the table of labels.
        home: where this machine's writers wait for each other.

    Raises:
        LakeError: another writer does not end.
    """
    with locked(home / "labels.lock", _WAIT) as is_ours:
        if not is_ours:
            raise LakeError(lake.url, "its labels are being written by another process")
        yield


def put_labels(lake: Lake, found: Labels) -> None:
    """Keep labels beside those of before, except what was read again and does not say so now.

    The caller is the ``only_label_writer``.
    """
    for source in ALL_SOURCES:
        read = found.read.get(source, frozenset())
        new = [label for label in found.labels if label.source == source]
        if read or new:
            kept = (
                label
                for label in lake.read(LABELS, source, Label)
                if label.origin not in read and label.session_id not in read
            )
            rows = sorted({*kept, *new}, key=ORDER)
            if rows or lake.stamp(LABELS, source) is not None:
                lake.write(LABELS, source, rows, Label)


def all_labels(lake: Lake, sources: Collection[str] = ALL_SOURCES) -> Iterator[Label]:
    """Yield the labels of some sources, those that decide first before the others."""
    partitions = lake.partitions(LABELS)
    for source in ALL_SOURCES:
        if source in sources:
            own = [key for key in partitions if key.partition("/")[0] == source]
            yield from lake.rows(LABELS, Label, own)


class LabelledSession(Struct, frozen=True, kw_only=True):
    """The columns of a session that labels are brought together with."""

    id: str
    task: str
    repository: str = ""
    started: datetime


def labelled_sessions(lake: Lake) -> list[LabelledSession]:
    """Return what labels need to know of the lake's sessions."""
    return list(lake.rows("raw_sessions", LabelledSession))


def labels_of(lake: Lake, session_id: str) -> list[Label]:
    """Return what is known of one session."""
    labels, roll = list(all_labels(lake)), Roll(labelled_sessions(lake))
    return [label for label in labels if roll.find(label.session_id) == session_id]


class Success(NamedTuple):
    """Whether a session succeeded, and who says so."""

    success: bool
    source: Source
    task: str
    """The benchmark's or the plan's; the session's id where it is on a task of its own."""
    label: Label
    """That says so."""


def success_labels(lake: Lake, sources: Collection[str] = DECIDING) -> dict[str, Success]:
    """Return whether sessions succeeded, by their ids, where a label says so.

    The first of all sources that says yes or no decides. Of several people's labels the middle
    one counts, the worse of two; of one person's several, the last.

    Args:
        lake: with the table of labels and the sessions.
        sources: that may decide.
    """
    labels = list(all_labels(lake, sources))
    sessions = labelled_sessions(lake) if labels else []
    by_id, roll = {row.id: row for row in sessions}, Roll(sessions)
    ranks: dict[str, int] = dict(zip(ALL_SOURCES, range(len(ALL_SOURCES)), strict=True))
    ranks |= dict.fromkeys(PEOPLE, ranks["person"])
    said: dict[str, dict[tuple[int, bool], dict[str, tuple[bool, Label]]]] = defaultdict(dict)
    for label in labels:
        success, id_ = success_of(label), roll.find(label.session_id)
        if success is not None and id_ and not label.loose:
            key = ranks[label.source], label.name.casefold() != SUCCESS
            rater = label.rater or label.origin
            said[id_].setdefault(key, {})[rater] = success, label
    found: dict[str, Success] = {}
    for id_, answers in said.items():
        ordered = sorted(
            answers[min(answers)].values(), key=lambda answer: (answer[0], answer[1].source)
        )
        success, label = ordered[(len(ordered) - 1) // 2]
        found[id_] = Success(success, label.source, label.task or own_task(by_id[id_]), label)
    return found


def label_values(lake: Lake, names: Collection[str]) -> dict[str, dict[str, float]]:
    """Return the numbers that labels of these names give to sessions, by name and session id.

    A yes is 1 and a no is 0. The last label of each rater counts, and of several raters the mean.

    Args:
        lake: with the table of labels and the sessions.
        names: in small letters with underscores.
    """
    chosen = [label for label in all_labels(lake) if plain_name(label.name) in names]
    roll = Roll(labelled_sessions(lake) if chosen else [])
    said: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for label in sorted(chosen, key=ORDER):
        number, id_ = _number_of(label.value), roll.find(label.session_id)
        if number is not None and id_:
            said[plain_name(label.name), id_][label.rater or label.origin] = number
    found: dict[str, dict[str, float]] = {name: {} for name in sorted(names)}
    for (name, id_), numbers in said.items():
        found[name][id_] = fmean(numbers.values())
    return found


_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/|out of)\s*([1-9]\d*)|(\d+(?:\.\d+)?)\s*%")


def _number_of(value: str) -> float | None:
    """Return the number that a label's value means, ``4/5`` and ``80%`` as 0.8; None for words."""
    said = value.strip().casefold()
    if said in YES or said in NO:
        return float(said in YES)
    if found := _SHARE.fullmatch(said):
        return float(found[1]) / int(found[2]) if found[1] else float(found[3]) / 100
    try:
        number = float(said)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def own_task(session: LabelledSession) -> str:
    """Return the plan that a session is on, else the session's id: a repository is no task that
    several sessions try."""
    is_plan = session.task not in ("unknown", slugify(session.repository or "unknown"))
    return session.task if is_plan else session.id


class Roll:
    """The sessions that are there, to be found by id or by plan."""

    def __init__(self, sessions: Iterable[LabelledSession]) -> None:
        ordered = sorted(sessions, key=lambda session: (session.started, session.id))
        self.ids = {session.id for session in ordered}
        self._latest = {session.task: session.id for session in ordered}

    def find(self, given: str) -> str:
        """Return the session's id; empty when there is none."""
        return given if given in self.ids else self._latest.get(slugify(given), "")
