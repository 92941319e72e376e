from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debrief.training.publishing.one_set import Wanted
from debrief.training.publishing.publish import publish
from debrief.training.publishing.set_card import published_card
from tests.training.lakes import TASK, lake_of, stored
from tests.training.publishing.test_publish import team
from tests.training.scenario import FINGERPRINT

NAME = f"{TASK}.{FINGERPRINT}"


def test_the_lines_of_a_published_card_load_the_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    datasets.disable_progress_bars()
    lake = lake_of(tmp_path / "lake", team())
    made = stored(lake, eval_share=0.5)
    (one,) = publish(lake, str(tmp_path / "out"), Wanted(form="trl")).sets
    card = published_card(made.card, name=one.name, form="trl", lines=one.lines)
    assert f"As `trl`: {made.row.train} train and {made.row.eval} eval lines. " in card
    assert f'data_files="{FINGERPRINT}.jsonl"' not in card
    assert card.startswith(made.card.partition("## How to load it")[0])
    monkeypatch.chdir(tmp_path / "out" / TASK / FINGERPRINT)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    names: dict[str, Any] = {}
    exec(card.split("```python\n")[1].split("```")[0], names)
    assert {side: len(rows) for side, rows in names["samples"].items()} == one.lines


def test_a_published_card_says_which_lines_were_taken() -> None:
    card = published_card(
        "# Set\n\n## How to load it\n\nhow\n",
        name=NAME,
        form="openai",
        lines={"train": 3, "eval": 0},
        min_overall_quality=0.6,
        status="ready",
    )
    assert "As `openai`: 3 train and 0 eval lines, those of at least 0.6 overall quality" in card
    assert "and that are `ready` alone." in card


def test_the_card_of_a_set_without_a_line_loads_nothing() -> None:
    card = published_card(
        "# Set\n\n## How to load it\n\nhow\n",
        name=NAME,
        form="reward",
        lines={"train": 0, "eval": 0},
    )
    assert card.endswith("There is no line to load.\n")
    assert "```" not in card
