from __future__ import annotations

from pathlib import Path

import pytest

from debrief.errors import ConfigurationError, InputError
from pipelines.options import RunOptions, parse_weeks


def test_weeks_are_mondays_or_ranges_of_them() -> None:
    assert parse_weeks(["2026-11-16", "2026-10-26..2026-11-09"]) == (
        "2026-10-26",
        "2026-11-02",
        "2026-11-09",
        "2026-11-16",
    )


@pytest.mark.parametrize(
    "text",
    ["2026-11-17", "soon", "", "..", "2026-11-16..2026-11-02", "2026-W47", "1999-01-04"],
)
def test_what_is_no_week_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="--week"):
        parse_weeks([text])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no-such-folder: is not a folder"):
        RunOptions(sessions=(str(tmp_path / "no-such-folder"),)).settings()


def test_offline_and_a_model_exclude_each_other() -> None:
    with pytest.raises(ConfigurationError, match="exclude each other"):
        RunOptions(offline=True, model="openai/gpt-4o-mini").settings()
