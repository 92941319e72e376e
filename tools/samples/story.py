"""A story: who worked where, with which tool and prompts, when, and what happened."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from debrief.errors import InputError
from tools.samples import chance
from tools.samples.events import Event
from tools.samples.material import SECRETS
from tools.samples.perform import Performance
from tools.samples.script import Script
from tools.samples.tree import WorkingTree

HOME = "/home/sam"
PLANS = {
    "parcel-api": "carrier-retries",
    "harbour-ui": "keyboard-navigation",
    "meter-etl": "late-readings",
}
"""The plan that each of the three code bases works on."""

_DEFAULT_MODELS = {"claude-code": "claude-sonnet-4-5-20250929", "droid": "gpt-5.1-codex"}
_DEFAULT_VERSIONS = {"claude-code": "2.1.231", "droid": "0.228.0"}


class Story(Struct, frozen=True, kw_only=True):
    """A script that was performed."""

    name: str
    tool: str
    repository: str
    session_id: str
    title: str
    model: str
    version: str
    prompts: str
    """Name of the prompt set in force; empty where none was captured."""
    damage: tuple[str, ...]
    started: datetime
    events: tuple[Event, ...]
    left: dict[str, str] = {}
    """The code base after it, by path; without its work where that was thrown away."""
    is_kept: bool = True
    """Its work was not thrown away."""

    @property
    def plan(self) -> str:
        """The plan's id, which is also the branch."""
        return PLANS[self.repository]

    @property
    def cwd(self) -> str:
        """The worktree that the session ran in."""
        return f"{HOME}/{self.repository}/.debrief/worktrees/{self.plan}"


def started_at(script: Script) -> datetime:
    """Return when a script's session starts, in UTC."""
    moment = script.head["at"]
    if not isinstance(moment, datetime):
        raise InputError(script.name, "'at' is not a time", "Write it as 2026-10-05 09:00:00.")
    return moment.replace(tzinfo=UTC)


def perform(script: Script, tree: WorkingTree) -> Story:
    """Perform a script on a working tree, which keeps what the story changed in it."""
    head = script.head
    tool, repository = head["tool"], head["repository"]
    start = started_at(script)
    cwd = f"{HOME}/{repository}/.debrief/worktrees/{PLANS[repository]}"
    return Story(
        name=script.name,
        tool=tool,
        repository=repository,
        session_id=chance.uuid_of(script.name, "session"),
        title=head["title"],
        model=head.get("model", _DEFAULT_MODELS[tool]),
        version=str(head.get("version", _DEFAULT_VERSIONS[tool])),
        prompts=head.get("prompts", ""),
        damage=tuple(head.get("damage", ())),
        started=start,
        events=Performance(script.name, tree, cwd, start).play(script.steps),
    )


def stamp(moment: datetime) -> str:
    """Return a time as both tools write it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def encode(record: Any) -> str:
    """Return a record as a line of JSON; planted secrets in JSON's ``\\u`` form."""
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    for secret in SECRETS.values():
        line = line.replace(secret, "".join(f"\\u{ord(letter):04x}" for letter in secret))
    return line


def join(records: Iterable[Any]) -> bytes:
    """Return records as JSON lines."""
    return "".join(f"{encode(record)}\n" for record in records).encode()


def dashed(path: str) -> str:
    """Return a path as Claude Code names a folder after it."""
    return re.sub(r"[^A-Za-z0-9]", "-", path)
