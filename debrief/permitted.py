"""Limit what a run's configuration may choose to what the settings of its machine allow.

A run's configuration can come from a browser. So it decides nothing that spends money, reads a
folder or writes to a place that nobody named on this machine. A command writes what it was given
into its own process's settings first; so it may choose freely.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from debrief.errors import ConfigurationError
from debrief.settings import Settings, variable_of


def permitted_lake(url: str, settings: Settings) -> str:
    """Return the lake that a run works on: the one it names, else that of the settings.

    Raises:
        ConfigurationError: settings name no such lake.
    """
    known = (settings.lake, *settings.lakes)
    if url and _place(url) not in map(_place, known):
        raise _refused("lake.url", url, "lakes")
    return url or settings.lake


def permitted_folders(
    folders: Iterable[str], settings: Settings, usual: Iterable[str]
) -> list[str]:
    """Return where a run reads transcripts: the folders it names, else those of the settings.

    Args:
        folders: folders or URLs; one below a folder that settings name will do.
        settings: of this machine.
        usual: the folders that are meant when settings name none.

    Raises:
        ConfigurationError: settings name no such folder.
    """
    known = [_place(session) for session in settings.sessions or usual]
    chosen = list(folders)
    for folder in chosen:
        place = _place(folder)
        if not any(place == each or place.startswith(f"{each}/") for each in known):
            raise _refused("sessions.folders", folder, "sessions")
    return chosen or list(settings.sessions)


def permitted_model(field: str, model: str, settings: Settings) -> str:
    """Return the model that a run names, which may be none.

    Raises:
        ConfigurationError: settings name no such model.
    """
    known = (settings.model, *settings.models)
    if model and model not in known:
        raise _refused(f"evaluator.{field}", model, "models")
    return model


def permitted_repository(folder: str, settings: Settings) -> Path | None:
    """Return the repository that a run names; None without one.

    Raises:
        ConfigurationError: settings name no such repository.
    """
    if folder and _place(folder) not in map(_place, map(str, settings.repositories)):
        raise _refused("evaluator.repository", folder, "repositories")
    return Path(folder).expanduser() if folder else None


Limit = TypeVar("Limit", int, float)


def lower(chosen: Limit | None, limit: Limit | None) -> Limit | None:
    """Return the lower of two limits; None is no limit."""
    limits = [each for each in (chosen, limit) if each is not None]
    return min(limits) if limits else None


def _place(location: str) -> str:
    """Return a location in the one form in which two of them can be compared."""
    if "://" in location:
        return location.rstrip("/")
    return str(Path(location).expanduser().resolve())


def _refused(field: str, value: str, setting: str) -> ConfigurationError:
    return ConfigurationError(
        f"{field} {value}",
        "is not among what this machine's settings name",
        f"{variable_of(setting)} can name it.",
    )
