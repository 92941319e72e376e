"""Where prompt templates, judges and skills are found, in a checkout or in an installed package."""

from __future__ import annotations

from pathlib import Path

from debrief.errors import ConfigurationError

_HERE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Return a folder of the project's own content: ``prompts``, ``judges`` or ``skills``.

    In a checkout they stand at the top, where people edit them; an installed package carries
    them beside this module.

    Raises:
        ConfigurationError: neither place has it.
    """
    for place in (_HERE / name, _HERE.parents[1] / name):
        if place.is_dir():
            return place
    raise ConfigurationError(
        name, f"is neither in {_HERE} nor in {_HERE.parents[1]}", "Install debrief again"
    )
