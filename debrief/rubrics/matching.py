"""Matching: which session a label is on, and what an id that is nobody's looks like."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from debrief.rubrics.labels import Label
from debrief.slugs import slugify

_SUFFIX = re.compile(r"\.(?:jsonl?|md|txt)\Z")
_LEAST = 8
"""Characters of an id's beginning that tell it from others."""
_EXAMPLES = 3


class Unmatched(Struct, frozen=True):
    """A label that no score was found for."""

    label: Label
    reason: str
    similar_to: str = ""
    """The session whose id this one is, only written otherwise."""


class Roll:
    """The sessions that are there, to be found by id or by plan.

    Args:
        sessions: the id, the task and the start of each.
    """

    def __init__(self, sessions: Iterable[tuple[str, str, datetime]]) -> None:
        ordered = sorted(sessions, key=lambda one: (one[2], one[0]))
        self._ids = {id_ for id_, _, _ in ordered}
        self._latest = {task: id_ for id_, task, _ in ordered}
        self._alike: dict[str, set[str]] = {}
        for id_ in self._ids:
            self._alike.setdefault(_core(id_), set()).add(id_)

    def find(self, label: Label) -> tuple[str, Unmatched | None]:
        """Return the session's id, or an empty text and why there is none."""
        given = label.session_id
        if given in self._ids:
            return given, None
        plan = slugify(given)
        if plan in self._latest:
            return self._latest[plan], None
        return "", Unmatched(label, "no session of that id", self._look_alike(given))

    def examples(self) -> list[str]:
        """Return a few ids, so that a person sees what they look like."""
        return sorted(self._ids)[:_EXAMPLES]

    def _look_alike(self, given: str) -> str:
        core = _core(given)
        found = self._alike.get(core, set())
        if not found and len(core) >= _LEAST:
            found = {
                id_
                for known, ids in self._alike.items()
                if known.startswith(core) or (len(known) >= _LEAST and core.startswith(known))
                for id_ in ids
            }
        return next(iter(found)) if len(found) == 1 else ""


def _core(id_: str) -> str:
    """Return what stays of an id when case, folders, prefixes, suffixes and dashes do not count."""
    last = re.split(r"[/\\:]", _SUFFIX.sub("", id_.strip().casefold()))[-1]
    return re.sub(r"[^a-z0-9]", "", last)
