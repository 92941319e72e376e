from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from debrief.errors import ConfigurationError
from debrief.settings import load_settings
from debrief.training.selection import TrainingOptions, options_chosen


def options(at_launch: Mapping[str, object], **values: str) -> TrainingOptions:
    named = {f"DEBRIEF_TRAINING_{name.upper()}": value for name, value in values.items()}
    return options_chosen(load_settings({"DEBRIEF_HOME": "/none", **named}), at_launch)


@pytest.mark.parametrize(
    ("values", "option", "value"),
    [
        ({"min_overall_quality": "0.6"}, "min_overall_quality", 0.6),
        ({"status": "ready"}, "status", "ready"),
        ({"require_change": "1"}, "require_change", True),
        ({"tools": "claude-code, codex,"}, "tools", ("claude-code", "codex")),
        ({"since": "2026-10-05"}, "since", date(2026, 10, 5)),
        ({"max_tokens": "8192"}, "max_tokens", 8192),
        ({"max_tokens": "0"}, "max_tokens", None),
        ({"eval_share": "0"}, "eval_share", 0.0),
        ({"status": " "}, "status", "any"),
    ],
)
def test_a_setting_chooses_for_every_launch(
    values: dict[str, str], option: str, value: object
) -> None:
    assert getattr(options({}, **values), option) == value


def test_what_is_given_at_launch_comes_before_a_setting() -> None:
    given: dict[str, Any] = {"status": "any", "max_tokens": 0, "tools": [], "models": None}
    chosen = options(given, status="ready", max_tokens="8192", tools="codex", models="opus")
    assert chosen == TrainingOptions(models=("opus",))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"max_token": "8192"}, "DEBRIEF_TRAINING_MAX_TOKEN: is no setting"),
        ({"status": "done"}, "status"),
        ({"since": "yesterday"}, "since"),
        ({"max_tokens": "many"}, "max_tokens"),
    ],
)
def test_a_setting_that_makes_no_sense_is_told(values: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        options({}, **values)
