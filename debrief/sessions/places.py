"""Where sessions are read: the folders that a machine's settings name, else its tools' own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from debrief.sessions.sources import default_folders
from debrief.sessions.transfer import mirror
from debrief.settings import Settings


def usual_folders() -> list[Path]:
    """Return the folders of every known tool's transcripts that exist for this user."""
    return default_folders(Path.home(), os.environ)


def places_of(settings: Settings, folders: Iterable[str] | None = None) -> list[Path]:
    """Return the folders to search; what is in an object store is brought here first.

    Args:
        settings: of this machine.
        folders: folders or URLs. Default: those of the settings. Without any, the usual ones.

    Raises:
        DebriefError: A store is away, or refuses.
    """
    chosen = settings.sessions if folders is None else folders
    return [
        mirror(folder, settings.home) if "://" in folder else Path(folder).expanduser().absolute()
        for folder in chosen
    ] or usual_folders()
