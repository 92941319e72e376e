"""Keys of an earlier tool's environment file, in the home folder."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from debrief.snapshots.migration.steps import EARLIER, MigrationStep

ENVIRONMENT = ".env"
_OF_A_PROVIDER = ("_API_KEY", "_API_BASE")


def plan_keys(home: Path, target: Path, settings: Set[str]) -> list[MigrationStep]:
    """Return the steps that bring keys over; no step holds a value.

    Taken over are providers' keys and addresses, and settings of Debrief's.

    Args:
        home: the person's home folder, which has ``.weft/.env`` or ``.lw_coder/.env``.
        target: the environment file of this machine's settings.
        settings: the variables that settings are read from.
    """
    from dotenv import dotenv_values

    if target.is_symlink():
        return [MigrationStep("left", target, note="is a symbolic link; no key is written to it")]
    there = dotenv_values(target) if target.is_file() else {}
    steps: list[MigrationStep] = []
    for path in (home / name / ENVIRONMENT for name in EARLIER):
        if not path.is_file():
            continue
        try:
            given = dotenv_values(path)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            steps.append(MigrationStep("left", path, note=f"cannot be read: {reason}"))
            continue
        for name, value in given.items():
            if not value or value == there.get(name):
                note = f"{name}, as in {path}" if value else f"{name} in {path} is empty"
                steps.append(MigrationStep("same" if value else "left", target, note=note))
            elif not name.endswith(_OF_A_PROVIDER) and name not in settings:
                note = f"{name} is no setting of Debrief"
                steps.append(MigrationStep("left", path, note=note))
            elif there.get(name):
                note = f"{name} is set already, and stays; {path} has another value"
                steps.append(MigrationStep("differs", target, note=note))
            else:
                note = f"{name} from {path}"
                steps.append(MigrationStep("key", target, path, key=name, note=note))
                there[name] = value
    return steps
