"""Choose the folder in which Dagster keeps its state for a lake."""

from __future__ import annotations

from pathlib import Path

from debrief.settings import Settings

CONFIGURATION = "dagster.yaml"
LAKE = "lake"
"""A file in the home of ``debrief up``: the lake that it was used for."""
_TEAM_FOLDER = "up"
"""In ``DEBRIEF_HOME``."""


def dagster_home(settings: Settings) -> Path:
    """Return the folder of Dagster's own storage: ``DAGSTER_HOME``, else one beside the lake.

    A lake that ``debrief up`` was used for has it where that does, on Postgres. Another local
    lake carries its history in ``.dagster``, so that the two are moved, copied and deleted
    together; for one in an object store it is kept under ``DEBRIEF_HOME``.
    """
    if settings.dagster_home:
        return settings.dagster_home.absolute()
    if is_team_lake(settings):
        return team_home(settings)
    if "://" in settings.lake:
        return settings.home / "dagster"
    return Path(settings.lake) / ".dagster"


def team_home(settings: Settings) -> Path:
    """Return the folder that is ``DAGSTER_HOME`` under ``debrief up``, unless one is named."""
    named = settings.dagster_home
    return named.absolute() if named else settings.home.absolute() / _TEAM_FOLDER


def is_team_lake(settings: Settings) -> bool:
    """Return whether ``debrief up`` was used for the lake of these settings."""
    file = team_home(settings) / LAKE
    return file.is_file() and file.read_text(encoding="utf-8") == settings.lake
