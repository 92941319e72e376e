"""Conditions on sessions, as ``--where tool=droid`` and a run's configuration give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from itertools import product

from msgspec import Struct

from debrief.errors import InputError

FIELDS = ("tool", "model", "task", "repository", "source", "fingerprint", "session")
"""What can be asked for. A session may have several models: one of them has to answer."""

_EXAMPLE = f"Write FIELD=VALUE, such as tool=droid or task=late-*. Fields: {', '.join(FIELDS)}."


class Where(Struct, frozen=True):
    """Conditions of which each must hold; without any, every session is meant."""

    conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Field and patterns of which one has to fit, ``*`` and ``?`` as in file names."""

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def __str__(self) -> str:
        return ";".join(f"{field}={','.join(patterns)}" for field, patterns in self.conditions)

    def takes(self, facts: Mapping[str, Iterable[str]]) -> bool:
        """Return whether a session is meant.

        Args:
            facts: what is known of it, by field; a field that is not there fits nothing.
        """
        return all(
            any(fnmatchcase(*pair) for pair in product(facts.get(field, ()), patterns))
            for field, patterns in self.conditions
        )

    def of(self, *fields: str) -> Where:
        """Return the conditions on these fields alone."""
        return Where(tuple(condition for condition in self.conditions if condition[0] in fields))


def where_of_sessions(ids: Iterable[str]) -> str:
    """Return the condition that takes the sessions with these ids.

    A sign that means something in a condition stands for any one sign.
    """
    return f"session={','.join(_SIGNS.sub('?', id_) for id_ in ids)}"


_SIGNS = re.compile(r"[,;*?\[\]\s]")


def parse_where(texts: Iterable[str]) -> Where:
    """Read conditions, several in a text being parted by semicolons.

    Raises:
        InputError: a text is no condition.
    """
    conditions: list[tuple[str, tuple[str, ...]]] = []
    for text in texts:
        for part in text.split(";"):
            field, equals, values = part.strip().partition("=")
            patterns = tuple(value.strip() for value in values.split(",") if value.strip())
            if not equals or not patterns:
                raise InputError(f"--where {text}", f"{part!r} is no condition", _EXAMPLE)
            if field.strip() not in FIELDS:
                raise InputError(f"--where {text}", f"{field.strip()!r} is no field", _EXAMPLE)
            conditions.append((field.strip(), patterns))
    return Where(tuple(conditions))
