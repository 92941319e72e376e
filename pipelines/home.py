"""Choose the folder in which Dagster keeps its state for a lake."""

from __future__ import annotations

from pathlib import Path

from debrief.settings import Settings

CONFIGURATION = "dagster.yaml"


def dagster_home(settings: Settings) -> Path:
    """Return the folder of Dagster's own storage: ``DAGSTER_HOME``, else one beside the lake.

    A local lake carries its history in ``.dagster``, so that the two are moved, copied and deleted
    together; for one in an object store it is kept under ``DEBRIEF_HOME``.
    """
    if settings.dagster_home:
        return settings.dagster_home.absolute()
    if "://" in settings.lake:
        return settings.home / "dagster"
    return Path(settings.lake) / ".dagster"
