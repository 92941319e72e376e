"""Readers: one module or package a source.

A module of this package that defines ``READER`` is a source; nothing else needs to know of it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module

from debrief.sessions.model import Action
from debrief.sessions.readers.base import Reader, actions_by_name


class Registry(Mapping[str, Reader]):
    """The readers by source, in alphabetical order; imported when one is first asked for."""

    @cached_property
    def _readers(self) -> dict[str, Reader]:
        found: dict[str, Reader] = {}
        for module in pkgutil.iter_modules(__path__):
            reader = getattr(import_module(f"{__name__}.{module.name}"), "READER", None)
            if reader is not None:
                found[reader.source] = reader
        return dict(sorted(found.items()))

    def __getitem__(self, source: str) -> Reader:
        return self._readers[source]

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    @cached_property
    def actions(self) -> dict[str, Action]:
        """What the tools of all sources do, by name in lower case: a name means one thing."""
        found: dict[str, Action] = {}
        for reader in self.values():
            found |= actions_by_name(reader.tools)
        return found


READERS = Registry()
