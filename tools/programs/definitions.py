"""The programs and the scripts, as programs.toml and scripts.toml have them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from debrief.sessions.model import CallStatus

_HERE = Path(__file__).parent


class Deed(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A call as a script has it, whatever the program calls the tool."""

    do: str
    file: str = ""
    command: str = ""
    old: str = ""
    new: str = ""
    content: str = ""
    prompt: str = ""
    about: str = ""
    status: CallStatus = "ok"
    exit: int | None = None

    def values(self, repository: Path) -> dict[str, str]:
        """Return what stands for the placeholders of a program's tool."""
        removed = [f"-{line}" for line in self.old.splitlines()]
        added = [f"+{line}" for line in (self.new or self.content).splitlines()]
        head = f"*** Update File: {self.file}\n@@" if removed else f"*** Add File: {self.file}"
        patch = "\n".join(["*** Begin Patch", head, *removed, *added, "*** End Patch", ""])
        texts = {name: value for name, value in msgspec.structs.asdict(self).items() if value}
        return {**texts, "path": str(repository / self.file), "patch": patch}


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One message of the model."""

    text: str = ""
    calls: tuple[Deed, ...] = ()
    meanwhile: dict[str, str] = {}
    """What somebody else writes into files of the repository while the model answers, by path."""
    fails: bool = False
    """The provider refuses the request in place of an answer."""
    breaks_off: bool = False
    """The stream ends in the middle of the first answer; asked again, the model says all of it."""


class Script(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the model does on one prompt."""

    prompt: str
    """As the model is given it."""
    typed: str = ""
    """By the person, when that is not the prompt: a slash command."""
    resumes: str = ""
    """The script that began the session."""
    forks: str = ""
    """The script that began the session of which it begins a fork."""
    keys: tuple[str, ...] = ()
    """What the person types on the program's terminal in place of a prompt on its command line."""
    aside: str = ""
    """A command that the person runs beside the conversation, on the program's terminal, before
    the prompt; without steps nobody asks the model anything, and there is no session."""
    told: tuple[str, ...] = ()
    """What the model must have been told that no person wrote: a part of each text."""
    shows: str = ""
    """The picture that the person adds to the prompt."""
    helper: str = ""
    """The script of the subagent that it starts."""
    summarises: bool = False
    """The program has the model write a summary, which takes the conversation's place."""
    steps: tuple[Step, ...] = ()


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """A program's tool for a deed; an input that is a text is a tool's that takes free text."""

    tool: str
    input: dict[str, Any] | str


class Program(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A coding agent on npm."""

    package: str
    version: str
    start: tuple[str, ...]
    tools: dict[str, Tool]
    resume: tuple[str, ...] = ()
    fork: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    """Starts it with a picture beside the prompt."""
    terminal: tuple[str, ...] = ()
    """Starts it on a terminal, for scripts with keys and with a command of the person's."""
    aside: tuple[str, ...] = ("!", "{aside}", "\r")
    """The keys that run such a command; an empty one waits."""
    scripts: tuple[str, ...] = ("fix", "again", "agent", "hello")
    """In the order in which they are run: what resumes comes right behind what it resumes, and
    scripts in which somebody else edits files come last, since git cannot tell whose lines are
    whose."""
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    """Its settings, by path below its home."""
    told: dict[str, tuple[str, ...]] = {}
    """What the model must have been told in a script, where that is in the program's own words."""
    sessions: str = ""
    """Where to find the last session's id, as a pattern below its home: the name's stem."""
    types: bool = False
    """It resumes on a terminal only: the prompt is typed there."""
    pinned: bool = False
    """An older version, kept beside the newest."""
    unknown: dict[str, str] = {}
    """Why a field cannot be read from its files, by field."""


class Definitions(Struct, frozen=True):
    """All that is known of programs and scripts."""

    node: str
    programs: dict[str, Program]
    scripts: dict[str, Script]
    repository: dict[str, str]
    """The files of the repository that the programs work on, by path."""
    pictures: dict[str, bytes]
    """Its pictures, by path."""


def load() -> Definitions:
    """Read both files."""
    raw = tomllib.loads((_HERE / "programs.toml").read_text(encoding="utf-8"))
    node = raw.pop("node")
    scripts = tomllib.loads((_HERE / "scripts.toml").read_text(encoding="utf-8"))
    return Definitions(
        node=node,
        programs={name: msgspec.convert(_whole(raw, one), Program) for name, one in raw.items()},
        scripts=msgspec.convert(scripts["scripts"], dict[str, Script]),
        repository=msgspec.convert(scripts["repository"], dict[str, str]),
        pictures=msgspec.convert(scripts["pictures"], dict[str, bytes]),
    )


def _whole(raw: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    base = raw[one["like"]] if "like" in one else {}
    return {**base, **{key: value for key, value in one.items() if key != "like"}}


def filled(template: Any, values: Mapping[str, str]) -> Any:
    """Return a template with its placeholders replaced, in lists and objects too."""
    if isinstance(template, str):
        for name, value in values.items():
            template = template.replace(f"{{{name}}}", str(value))
        return template
    if isinstance(template, dict):
        return {key: filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, values) for value in template]
    return template
