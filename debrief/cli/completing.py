"""Shell completion of names that stand in a repository's folder, such as plans and judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path


def starting_with(
    names: Callable[[Path], Sequence[str]],
) -> Callable[[str], list[str]]:
    """Complete what is typed by names that a repository's folder gives."""

    def complete(incomplete: str) -> list[str]:
        from debrief.snapshots.capture import find_repository

        repository = find_repository(Path())
        found = names(repository.root) if repository else ()
        return [name for name in found if name.startswith(incomplete)]

    return complete
