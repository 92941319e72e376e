"""Errors that a person can act on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pydantic import ValidationError

CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
"""What a terminal obeys, or does not show: control characters, and those that turn its text."""
_LONGEST_SHOWN, _LONGEST_SAID = 255, 2_000


class DebriefError(Exception):
    """A failure that names its culprit, its reason, and the next move.

    Every error that a user may see is one of these, so that the command line can print it in
    one line, and a stage can file it beside the session that it concerns.

    Args:
        culprit: the file, session, setting or server that failed.
        reason: what is wrong with it.
        next_move: what to do about it; empty when there is nothing to do.
    """

    code: str = "failed"
    """What programs know it by, where a command reports errors as JSON."""
    facts: Mapping[str, object] = {}
    """What programs read of it beside its words."""

    def __init__(self, culprit: str, reason: str, next_move: str = "") -> None:
        self.culprit = culprit
        self.reason = reason
        self.next_move = next_move
        super().__init__(str(self))

    def known_as(self, code: str, **facts: object) -> Self:
        """Return itself, with a code and facts for programs."""
        self.code, self.facts = code, facts
        return self

    def __str__(self) -> str:
        move = f" {self.next_move}" if self.next_move else ""
        return without_controls(f"{self.culprit}: {self.reason}.{move}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.culprit, self.reason, self.next_move), vars(self)


class ConfigurationError(DebriefError):
    """A setting, an option or a file of ours is missing or wrong."""


class InputError(DebriefError):
    """Something that was handed in cannot be used: a path, a name, a transcript."""


class ModelError(DebriefError):
    """A language model could not be asked, or gave no usable answer."""


class LangfuseError(DebriefError):
    """The Langfuse server refused, lost or could not take a request."""


class LakeError(DebriefError):
    """What holds the lake is away or full, or refused a request."""


def first_problem(error: ValidationError) -> tuple[str, str]:
    """Return the place and the reason of the first value that does not fit a pydantic model."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ".".join(map(str, first["loc"])), first["msg"]


def shown(path: str) -> str:
    """Return a path as messages show it: quoted, on one line, and never endless."""
    return repr(path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}…")


def readable(path: str) -> str:
    """Return a path as lists show it: as it is, or quoted where a terminal would obey it."""
    return path if path.isprintable() and path.strip() == path else shown(path)


def without_controls(text: str) -> str:
    """Return text whose control characters are shown as U+FFFD; line ends and tabs stay."""
    return CONTROLS.sub("\ufffd", text)


def flat(value: object) -> str:
    """Return somebody else's words on one line, without terminal control characters."""
    words = " ".join(str(value).split())[:_LONGEST_SAID]
    return "".join(char if char.isprintable() else "\ufffd" for char in words)
