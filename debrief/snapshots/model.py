"""The rows of snapshots: prompts, circumstances, and the names that people give to prompts.

The two pydantic models are the files that people and other tools read and write (``prompts/``
and ``metadata.json``); the structs are rows of the lake. A fingerprint is known by a name: one that
a person gave it, else the first heading of its text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from debrief.errors import InputError, LakeError, without_controls
from debrief.files import locked
from debrief.lake import Lake
from debrief.markdown import shorten
from debrief.snapshots.fingerprint import compute_prompt_fingerprint

SnapshotOrigin = Literal["recorded", "reconstructed", "unknown"]
CommitOrigin = Literal["", "recorder", "capture", "transcript", "branch", "head", "history"]
"""Who says from which commit the work started. ``branch``: it is the last one of the session's
branch before the session began; ``head``: that of the clone's own branch, as the session's is gone;
``history``, in rows of an earlier version: one of these two. Empty when nobody does."""
UNKNOWN = "unknown"


class PromptSnapshot(BaseModel):
    """The exact main prompt and subagent prompts in force, current or of a past session."""

    model_config = ConfigDict(frozen=True)

    main: str
    subagents: dict[str, str] = Field(default_factory=dict)
    """Text by name."""


class SessionMetadata(BaseModel):
    """The content of ``metadata.json``; keys that others added are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    tool: str = "claude-code"
    model: str | None = None
    recorded_at: datetime | None = None
    prompt_fingerprint: str | None = None
    eval_fingerprint: str | None = None


class SubagentPrompt(Struct, frozen=True):
    """One subagent's prompt in a row."""

    name: str
    text: str


class PromptSnapshotRow(Struct, frozen=True, kw_only=True):
    """The prompts of one session."""

    session_id: str
    origin: SnapshotOrigin
    main: str = ""
    subagents: tuple[SubagentPrompt, ...] = ()
    prompt_fingerprint: str = UNKNOWN
    prompt_digest: str = ""
    """The whole SHA-256 whose first 8 digits are the fingerprint; empty when unknown."""
    note: str = ""
    """Where the prompts came from, or why there are none."""
    commit: str = ""
    """Of reconstructed prompts: the commit that they were read from."""
    commit_origin: CommitOrigin = ""
    """How that commit is known."""


class SessionMetadataRow(Struct, frozen=True, kw_only=True):
    """The circumstances of one session."""

    session_id: str
    tool: str
    model: str | None = None
    recorded_at: datetime
    task: str
    repository: str = ""
    prompt_fingerprint: str = UNKNOWN
    prompt_digest: str = ""
    eval_fingerprint: str = UNKNOWN
    eval_digest: str = ""
    base_commit: str = ""
    """The repository's commit that the work started from; empty when not known."""
    base_commit_origin: CommitOrigin = ""
    licence: str = ""
    """The repository's at that commit, as an SPDX expression; empty when its files state none."""
    status: Literal["", "draft", "ready"] = ""
    """What the recorder holds of the session; empty when it does not tell, or for another tool."""
    withheld: str = ""
    """Why the session can train no model, in words; empty when it can."""


SNAPSHOTS = "prompt_snapshots"
NAMES, ALL = "prompt_names", "all"
"""Table of the names that people gave, in one partition."""
LONGEST = 60
"""Characters of a name."""
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_EMPTY = compute_prompt_fingerprint(PromptSnapshot(main=""))
_KNOWN = {_EMPTY: "no prompt files", UNKNOWN: "prompts not known"}
_WAIT = 30.0
"""Seconds for another writer on this machine to finish."""


class PromptName(Struct, frozen=True, kw_only=True):
    """One row: what a person calls a fingerprint."""

    fingerprint: str
    name: str
    rater: str
    """Who gave it."""
    named_at: datetime


class PromptUse(Struct, frozen=True, kw_only=True):
    """A fingerprint, and the sessions that ran with it."""

    fingerprint: str
    name: str
    """As shown: given by a person, else the first heading; no two have the same."""
    is_given: bool
    snapshot: PromptSnapshotRow
    """One of those with this fingerprint; all have the same texts."""
    sessions: tuple[tuple[str, str], ...]
    """Ids with their weeks, in order."""


class _Ran(Struct, frozen=True):
    """The columns that tell who ran with what."""

    session_id: str
    prompt_fingerprint: str = UNKNOWN


def prompts_in_use(lake: Lake) -> list[PromptUse]:
    """Return all fingerprints of the lake, those that most sessions ran with first."""
    sessions: dict[str, list[tuple[str, str]]] = defaultdict(list)
    snapshots: dict[str, PromptSnapshotRow] = {}
    for week in lake.partitions(SNAPSHOTS):
        firsts: dict[str, str] = {}
        for ran in lake.read(SNAPSHOTS, week, _Ran):
            sessions[ran.prompt_fingerprint].append((ran.session_id, week))
            if ran.prompt_fingerprint not in snapshots:
                firsts.setdefault(ran.prompt_fingerprint, ran.session_id)
        if firsts:
            rows = lake.read(SNAPSHOTS, week, PromptSnapshotRow, ("session_id", firsts.values()))
            snapshots |= {row.prompt_fingerprint: row for row in rows}
    given = {row.fingerprint: row.name for row in lake.read(NAMES, ALL, PromptName)}
    names = _distinct({key: given.get(key) or heading_of(row) for key, row in snapshots.items()})
    return [
        PromptUse(
            fingerprint=key,
            name=names[key],
            is_given=key in given,
            snapshot=snapshots[key],
            sessions=tuple(own),
        )
        for key, own in sorted(sessions.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    ]


def fingerprint_names(lake: Lake) -> dict[str, str]:
    """Return the name of each prompt fingerprint of the lake, to be shown in its place."""
    return {prompt.fingerprint: prompt.name for prompt in prompts_in_use(lake)}


def heading_of(row: PromptSnapshotRow) -> str:
    """Return what a prompt calls itself: its first heading, else its first words."""
    if row.prompt_fingerprint in _KNOWN:
        return _KNOWN[row.prompt_fingerprint]
    found = _HEADING.search(row.main)
    words = found[1] if found else next(filter(str.strip, row.main.splitlines()), "")
    subagents = ", ".join(subagent.name for subagent in row.subagents)
    return _on_one_line(words) or _on_one_line(f"only subagents: {subagents}")


def _distinct(names: dict[str, str]) -> dict[str, str]:
    """Return the names, with the fingerprint behind each that several have."""
    counts = Counter(names.values())
    return {key: f"{name} · {key}" if counts[name] > 1 else name for key, name in names.items()}


def _on_one_line(text: str) -> str:
    return shorten(without_controls(text), LONGEST)


@contextmanager
def only_name_writer(lake: Lake, home: Path) -> Iterator[None]:
    """Hold this machine's lock on the names of prompts.

    Args:
        lake: with the names.
        home: where this machine's writers wait for each other.

    Raises:
        LakeError: another writer does not end.
    """
    with locked(home / "prompt_names.lock", _WAIT) as is_ours:
        if not is_ours:
            raise LakeError(lake.url, "its prompt names are being written by another process")
        yield


def name_prompt(lake: Lake, home: Path, fingerprint: str, name: str, rater: str) -> None:
    """Give a fingerprint a name; an empty one goes back to its heading.

    Raises:
        InputError: the name is too long.
        LakeError: another writer does not end.
    """
    name = " ".join(without_controls(name).split())
    if len(name) > LONGEST:
        raise InputError("the prompt's name", f"has more than {LONGEST} characters")
    with only_name_writer(lake, home):
        rows = [row for row in lake.read(NAMES, ALL, PromptName) if row.fingerprint != fingerprint]
        if name:
            now = datetime.now(UTC)
            rows.append(PromptName(fingerprint=fingerprint, name=name, rater=rater, named_at=now))
        lake.write(NAMES, ALL, rows, PromptName)
