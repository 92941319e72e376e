"""Did a line help? How often sessions had a trouble before a line about it, and with it.

Prompt files are taken as each session had them: as it recorded them, as a capture did, or as the
repository's history holds them (``prompt_snapshots``). A line is about a trouble when it was
proposed for it, or names its command, its file or what its corrections name. Nothing but time sets
the two sides apart, so a change is what went with the line, not what it did.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, get_args

from msgspec import Struct

from debrief.lake import Lake
from debrief.markdown import interval, plain, shorten, table
from debrief.snapshots.model import SNAPSHOTS
from debrief.stats import difference_of_shares
from debrief.troubles.model import (
    ALL,
    EVENTS,
    TROUBLES,
    LineEffect,
    LineOutcome,
    Trouble,
    TroubleEvent,
)
from debrief.troubles.remedies import code, line_for, stands_in

VERSION = "1"
"""Raised when the same sessions and troubles give other effects."""

_SHOWN_LINE = 400
_MARK = re.compile(r"\A\s*(?:[-*+]|\d{1,3}[.)]|>|#{1,6})?\s*(?:\[[ x]\]\s+)?")
_SIGNS = re.compile(r"[`*_\"“”'’]")
_TROUBLE = re.compile(r"<!-- trouble ([0-9a-f]+)\b")
_SPAN = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"`([^`\n]+)`|([\w-]*(?:[._/][\w-]+)+|\w+(?:_\w+)+|[a-z]+[A-Z]\w+|[\w-]+\(\))")
_OF_FILES = re.compile(r"\b(?:re-?read|read|open|edit|begin|start|look)\b", re.IGNORECASE)
"""A line about a file says what to do with it; a list of the repository's files does not."""

_EVERYWHERE = re.compile(r"(?:readme|index|main|mod|lib|__init__|setup|config)\b", re.IGNORECASE)
"""Files of these names are in many folders."""


class PromptedSession(Struct, frozen=True, kw_only=True):
    """A session whose prompt files are known."""

    id: str
    repository: str
    started: datetime
    prompt: str
    """All of its prompt files."""


class SessionStart(Struct, frozen=True):
    """The columns of a session that are needed here."""

    id: str
    repository: str
    started: datetime


class _GivenPrompt(Struct, frozen=True):
    """The columns of a ``prompt_snapshots`` row that are needed here."""

    session_id: str
    origin: str
    main: str = ""


def prompted_sessions(lake: Lake) -> Iterator[PromptedSession]:
    """Yield the sessions of a lake whose prompt files are known, week by week."""
    for week in lake.partitions(SNAPSHOTS):
        heads = {row.id: row for row in lake.read("raw_sessions", week, SessionStart)}
        for row in lake.read(SNAPSHOTS, week, _GivenPrompt):
            head = heads.get(row.session_id)
            if head is not None and row.origin != "unknown":
                yield PromptedSession(
                    id=head.id, repository=head.repository, started=head.started, prompt=row.main
                )


def line_effects_in(lake: Lake) -> list[LineEffect]:
    """Return what became of the troubles of a lake."""
    troubles = list(lake.read(TROUBLES, ALL, Trouble))
    return line_effects(troubles, lake.rows(EVENTS, TroubleEvent), prompted_sessions(lake))


def line_effects(
    troubles: Iterable[Trouble],
    events: Iterable[TroubleEvent],
    sessions: Iterable[PromptedSession],
) -> list[LineEffect]:
    """Return what became of each trouble that a line of the prompt files is about.

    Returns:
        By repository: fewer, more, no change, then what cannot be told.
    """
    troubled: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for event in events:
        troubled[event.repository, event.kind, event.subject].add(event.session_id)
    by_repository: dict[str, list[PromptedSession]] = defaultdict(list)
    for session in sessions:
        by_repository[session.repository].append(session)
    effects = [
        effect
        for trouble in troubles
        for effect in _effects_on(
            trouble,
            by_repository.get(trouble.repository, ()),
            troubled[trouble.repository, trouble.kind, trouble.subject],
        )
    ]
    effects.sort(
        key=lambda row: (row.repository, _ORDER.index(row.outcome), row.change or 0.0, row.line)
    )
    return effects


_ORDER: tuple[LineOutcome, ...] = get_args(LineOutcome)


def _effects_on(
    trouble: Trouble, sessions: Iterable[PromptedSession], troubled: set[str]
) -> Iterator[LineEffect]:
    ordered = sorted(sessions, key=lambda session: (session.started, session.id))
    naming = _naming_of(trouble)
    by_prompt = {prompt: _lines_about(naming, prompt) for prompt in {s.prompt for s in ordered}}
    about = {session.id: by_prompt[session.prompt] for session in ordered}
    first: dict[str, tuple[datetime, str]] = {}
    for session in ordered:
        for key, line in about[session.id].items():
            first.setdefault(key, (session.started, line))
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for key in first:
        together[tuple(session.id for session in ordered if key in about[session.id])].append(key)
    for after, keys in together.items():
        since, line = first[keys[0]]
        before = [
            session.id for session in ordered if session.started < since and not about[session.id]
        ]
        sides = _counted(before, troubled), _counted(after, troubled)
        yield _effect(trouble, line, len(keys), since, *sides)


_FEWEST_SESSIONS = 5
"""On each side of a line; what one session did is no effect, whatever its interval says."""


def _counted(ids: Sequence[str], troubled: set[str]) -> tuple[int, int]:
    return sum(id_ in troubled for id_ in ids), len(ids)


def _effect(
    trouble: Trouble,
    line: str,
    lines: int,
    since: datetime,
    before: tuple[int, int],
    after: tuple[int, int],
) -> LineEffect:
    change = low = high = None
    outcome: LineOutcome = "always_there"
    if before[1]:
        found = difference_of_shares(after, before)
        change, low, high = (round(each, 4) for each in (found.value, found.low, found.high))
        half = before[0] / before[1] / 2
        if min(before[1], after[1]) < _FEWEST_SESSIONS:
            outcome = "too_early"
        elif high < 0:
            outcome = "fewer"
        elif low > 0:
            outcome = "more"
        else:
            outcome = "no_change" if half > 0 and low > -half else "too_early"
    return LineEffect(
        repository=trouble.repository,
        trouble_id=trouble.id,
        line=line,
        lines=lines,
        since=since,
        sessions_before=before[1],
        troubled_before=before[0],
        sessions_after=after[1],
        troubled_after=after[0],
        change=change,
        low=low,
        high=high,
        outcome=outcome,
    )


class _Naming(Struct, frozen=True):
    """By what a line is known to be about a trouble."""

    trouble_id: str
    own: str
    """The key of the line that was proposed for it; empty where none was."""
    commands: frozenset[str]
    files: frozenset[str]
    names: frozenset[str]

    def fits(self, line: str) -> bool:
        """Return whether a line names the command, the file or what corrections name."""
        return (
            any(_names_command(line, command) for command in self.commands if command in line)
            or any(
                stands_in(file, line) and _OF_FILES.search(line) is not None
                for file in self.files
                if file in line
            )
            or any(stands_in(name, line) for name in self.names if name in line)
        )


def _naming_of(trouble: Trouble) -> _Naming:
    return _Naming(
        trouble_id=trouble.id,
        own=_line_key(line_for(trouble) or ""),
        commands=frozenset(_commands_of(trouble)),
        files=frozenset(_files_of(trouble)),
        names=frozenset(_said_names(trouble)),
    )


def _lines_about(naming: _Naming, prompt: str) -> dict[str, str]:
    """Return the lines of a prompt file that are about a trouble, by what tells them apart."""
    found: dict[str, str] = {}
    for line, key, ids in _lines_of(prompt):
        if key and (naming.trouble_id in ids or key == naming.own or naming.fits(line)):
            found.setdefault(key, line)
    return found


@lru_cache(maxsize=256)
def _lines_of(prompt: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the lines without their marks, each with what tells it apart and the troubles that a
    comment below names."""
    lines: list[tuple[str, str, tuple[str, ...]]] = []
    for raw in prompt.splitlines():
        if lines and (named := _TROUBLE.findall(raw)):
            line, key, ids = lines[-1]
            lines[-1] = (line, key, (*ids, *named))
        elif (line := " ".join(_MARK.sub("", raw).split())) and not line.startswith("<!--"):
            lines.append((line[:_SHOWN_LINE], _line_key(line), ()))
    return tuple(lines)


def _line_key(line: str) -> str:
    """Return what is the same in two spellings of a line."""
    return " ".join(_SIGNS.sub("", line).casefold().split()).rstrip(".!:")


def _commands_of(trouble: Trouble) -> set[str]:
    """Return what a line has to name: how the command begins that stops the trouble, and one that
    is not there or not wanted.

    A command is in a prompt file for many reasons: that it is the one which fails tells nothing.
    Where both begin alike, the line has to name all of the one that worked.
    """
    worked = code(trouble.worked)
    tried = [command for example in trouble.examples if (command := code(example.command))]
    begins = {_beginning(command) for command in tried}
    named = {worked if _beginning(worked) in begins else _beginning(worked)}
    if trouble.kind in ("missing_tool", "refused_permission"):
        named |= begins
    return named - {""}


def _beginning(command: str) -> str:
    """Return the words of a command before its first option or path, three at most."""
    return " ".join(_plain_words(command))


def _plain_words(command: str) -> list[str]:
    words: list[str] = []
    for word in command.split()[:3]:
        if not re.fullmatch(r"[\w:@][\w:@.-]*", word) or word[0].isdigit():
            break
        words.append(word)
    return words


def _names_command(line: str, command: str) -> bool:
    """Return whether a line names a command; one of a single word counts only as code."""
    if " " in command:
        return stands_in(command, line)
    return any(span.split()[:1] == [command] for span in _SPAN.findall(line))


def _files_of(trouble: Trouble) -> set[str]:
    """Return the files of a trouble, and their names alone where these tell something."""
    files = {example.file for example in trouble.examples} - {""}
    names = {file.rpartition("/")[2] for file in files}
    return files | {name for name in names if not _EVERYWHERE.match(name)}


def _said_names(trouble: Trouble) -> set[str]:
    """Return the names (of files, of code, of commands) that all its corrections hold."""
    if trouble.kind != "correction":
        return set()
    said = [
        {found[1] or found[2] for found in _NAME.finditer(example.words)}
        for example in trouble.examples
    ]
    return set.intersection(*said) if len(said) > 1 else set()


OUTCOMES_SHOWN: Final[Mapping[LineOutcome, str]] = {
    "fewer": "yes: fewer sessions have it",
    "more": "no: more sessions have it",
    "no_change": "no change to speak of",
    "too_early": "too early to tell",
    "always_there": "cannot tell: every session had the line",
}
"""What became of a trouble after a line about it, in a few words."""


def shown_effect(row: LineEffect) -> tuple[str, str, str, str, str, str, str]:
    """Return a row to read: repository, line, since, before, after, change and outcome."""
    return (
        row.repository,
        shorten(row.line, 80) + (f" and {row.lines - 1} more" if row.lines > 1 else ""),
        f"{row.since:%Y-%m-%d}",
        _share(row.troubled_before, row.sessions_before),
        _share(row.troubled_after, row.sessions_after),
        interval(row.change, row.low, row.high, "+.0%"),
        OUTCOMES_SHOWN[row.outcome],
    )


def effects_markdown(effects: Iterable[LineEffect]) -> str:
    """Return the effects of lines as a table, and what it can say."""
    rows = [tuple(map(plain, shown_effect(row))) for row in effects]
    if not rows:
        return "No prompt file that sessions had holds a line about a trouble."
    head = ("Repository", "Line", "Since", "Before", "After", "Change", "Helped?")
    note = (
        "The share of sessions with the trouble before the line was added, and after, among "
        "sessions whose prompt files are known. The change has a 95 % interval; other changes in "
        "that time are part of it."
    )
    return f"{table(head, rows)}\n\n{note}\n"


def _share(troubled: int, sessions: int) -> str:
    return f"{troubled} of {sessions}"
