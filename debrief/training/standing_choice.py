"""What is chosen of sessions wherever training sets are made: this machine's settings.

A choice made at launch holds for that run alone. The next one, by the schedule, a sensor or the
command, would make every set again by the defaults, were it not for these settings.
"""

from __future__ import annotations

from collections.abc import Mapping

from debrief.errors import ConfigurationError
from debrief.settings import Settings
from debrief.training.selection import TrainingOptions, training_options

PREFIX = "DEBRIEF_TRAINING_"

_OR_NONE = frozenset({"since", "until", "max_per_repository", "max_tokens"})
"""Options for which an empty text or 0 says that there is no limit."""
_LISTS = frozenset({"tools", "models"})


def options_chosen(settings: Settings, at_launch: Mapping[str, object]) -> TrainingOptions:
    """Return what is chosen: at launch, else by a setting, else by default.

    Args:
        settings: such as ``DEBRIEF_TRAINING_MAX_TOKENS``.
        at_launch: by option; None for one that was not given.

    Raises:
        ConfigurationError: a setting names no option, or a value makes no sense.
    """
    given = {name: value for name, value in at_launch.items() if value is not None}
    chosen = {**standing_choice(settings), **given}
    return training_options({name: _value(name, value) for name, value in chosen.items()})


def standing_choice(settings: Settings) -> dict[str, object]:
    """Return the options that settings name, as texts; tools and models as lists, by commas.

    Raises:
        ConfigurationError: a setting names no option.
    """
    chosen: dict[str, object] = {}
    for setting, text in sorted(settings.values.items()):
        if not setting.startswith(PREFIX) or not text.strip():
            continue
        name = setting.removeprefix(PREFIX).lower()
        if name not in TrainingOptions.model_fields:
            known = ", ".join(PREFIX + option.upper() for option in TrainingOptions.model_fields)
            raise ConfigurationError(setting, "is no setting", f"There are: {known}.")
        parts = [part.strip() for part in text.split(",")]
        chosen[name] = [part for part in parts if part] if name in _LISTS else text.strip()
    return chosen


def _value(name: str, value: object) -> object:
    return None if name in _OR_NONE and value in ("", "0", 0) else value
