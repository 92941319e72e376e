"""What is in a training set and on its card."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.conversations import encode
from debrief.training.formats import validate_line
from debrief.training.manifest import MANIFEST
from debrief.training.model import TrainingSetRow, training_path
from tests.training.lakes import TASK, lake_of, stored
from tests.training.scenario import (
    EVAL,
    FINGERPRINT,
    MONDAY,
    judgement,
    metadata,
    says,
    session,
    turn,
)
from tests.training.strategies import sessions


class Made(Struct):
    """A training set in hand."""

    row: TrainingSetRow
    lines: bytes
    card: str

    def metadata(self) -> list[dict[str, Any]]:
        return [json.loads(line)["metadata"] for line in self.lines.splitlines()]


def build(team: Iterable[Session], lake: Lake | None = None, **options: Any) -> Made:
    """Make the training set of sessions, in a lake of their own."""
    with tempfile.TemporaryDirectory() as folder:
        lake = lake or lake_of(Path(folder), team)
        made = stored(lake, **options)
        lines = lake.read_bytes(training_path(TASK, FINGERPRINT)) or b""
        return Made(made.row, lines, made.card)


def team(count: int = 6) -> list[Session]:
    return [
        session(f"s{number}", started=MONDAY + timedelta(weeks=number % 4, minutes=number))
        for number in range(count)
    ]


def test_the_same_sessions_in_any_order_give_the_same_bytes() -> None:
    everybody = team()
    random.Random(3).shuffle(everybody)
    assert build(everybody) == build(team())


def test_only_the_judges_of_the_fingerprint_are_in(tmp_path: Path) -> None:
    one = session()
    lake, week = lake_of(tmp_path, [one]), week_of(one.started)
    mixed = [judgement(one), judgement(one, "other", eval_fingerprint="00000000")]
    lake.write("judge_evaluations", week, mixed, JudgeEvaluation)
    (made,) = build([], lake).metadata()
    assert [entry["name"] for entry in made["scores"] if entry["kind"] == "judge"] == ["reuse"]
    assert made["eval_fingerprint"] == EVAL


def test_the_base_commit_travels(tmp_path: Path) -> None:
    one = session("s1")
    lake = lake_of(tmp_path, [one])
    known = metadata(one, base_commit="6eaf2c1", base_commit_origin="capture", licence="MIT")
    lake.write("session_metadata", week_of(one.started), [known], SessionMetadataRow)
    made = build([], lake)
    assert made.metadata()[0]["base_commit"] == "6eaf2c1"
    assert "| shop | MIT | 1 |" in made.card
    assert "base commit is known, by who names it: 1 capture" in made.card


def test_of_a_pair_without_a_line_only_the_reasons_are_kept(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [session("s1")])
    assert stored(lake).row.samples == 1
    assert len(lake.names("training", ".jsonl")) == len(lake.names("training", ".md")) == 1
    made = stored(lake, min_overall_quality=0.9)
    assert lake.names("training") == [MANIFEST]
    (left,) = made.row.left_out
    assert left.sessions == ("s1",)
    again = stored(lake, min_overall_quality=0.9)
    assert (again.changed, again.row) == (False, made.row)


def test_the_card_tells_how_long_lines_are_and_counts_a_split_session_once() -> None:
    long = session("long", *(turn(f"ask {n}", says(f"w{n} " * 900)) for n in range(4)))
    made = build([long, session("s1")], max_tokens=3_000)
    assert made.row.samples > 2
    assert made.row.sessions == 2
    assert len({one["split"] for one in made.metadata() if one["session_id"] == "long"}) == 1
    assert f"but for 1 long ones, split into {made.row.samples - 1}" in made.card
    assert "| reuse | judge-1 | 1 | 2 | 0.80 |" in made.card
    assert "1 up to 1,024, " in made.card
    (longest,) = re.findall(r"tokens of the longest line \| ([\d,]+) ", made.card)
    assert 1_500 < int(longest.replace(",", "")) < 3_000


def test_a_session_that_is_named_by_a_secret_is_not_named_on_the_card() -> None:
    name = "AKIA" + "Q7ZK4MNB2XVH6TRD"
    made = build([session(name), session("fine")])
    assert name.encode() not in made.lines
    assert "| the last gate still found a secret | 1 | (aws-access-key-id) |" in made.card
    assert name not in made.card


def test_the_card_s_lines_load_the_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    datasets.disable_progress_bars()
    made = build(team(), near_duplicates="keep")
    (tmp_path / f"{FINGERPRINT}.jsonl").write_bytes(made.lines)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    names: dict[str, Any] = {}
    exec(made.card.split("```python\n")[1].split("```")[0], names)
    assert len(names["samples"]) == made.row.samples
    assert len(names["train"]) == made.row.train


def test_the_card_says_what_second_hand_sources_do_not_keep() -> None:
    assert "second-hand" not in build([session()]).card
    made = build([session("s1"), session("s2", source="agentsview")])
    assert "The samples from agentsview are second-hand: it drops system prompts" in made.card


def test_a_name_cannot_break_out_of_the_card() -> None:
    made = build([session(repository="a|b\n# Heading")])
    assert "a\\|b # Heading" in made.card


@given(st.lists(sessions(), max_size=4))
@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    max_examples=10,
    deadline=None,
)
def test_any_sessions_give_valid_lines_and_no_one_is_lost(drawn: list[Session]) -> None:
    readable = (msgspec.json.decode(encode(one), type=Session) for one in [session(), *drawn])
    everybody = [replace(one, id=f"{number}", task=TASK) for number, one in enumerate(readable)]
    made = build(everybody)
    lines = made.lines.splitlines(keepends=True)
    assert all(line.endswith(b"\n") for line in lines)
    assert [validate_line(line) for line in lines] == [[]] * made.row.samples
    assert made.row.samples + sum(row.count for row in made.row.left_out) == len(everybody)
    assert not any(row.reason.startswith("gives no valid line") for row in made.row.left_out)
