"""The table of labels: what is kept, what is taken back, and who decides."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from debrief.lake import Lake
from debrief.outcomes.store import (
    DECIDING,
    Label,
    LabelledSession,
    Labels,
    Source,
    all_labels,
    label_values,
    put_labels,
    success_labels,
)

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path / "lake"))
    sessions = [
        LabelledSession(id=id_, task=task, repository="shop", started=NOW)
        for id_, task in (("s1", "shop"), ("s2", "retry-queue"), ("s3", "shop"))
    ]
    lake.write("raw_sessions", "2026-03-02", sessions, LabelledSession)
    return lake


def label(session: str, value: str, source: Source = "csv", **fields: Any) -> Label:
    given = {"name": "success", "origin": "labels.csv", **fields}
    return Label(session_id=session, value=value, source=source, **given)


def test_what_is_read_again_replaces_what_it_said_before_and_nothing_else(lake: Lake) -> None:
    put_labels(lake, Labels(labels=(label("s1", "1"), label("s2", "0"), label("s3", "no", "ci"))))
    put_labels(lake, Labels(labels=(label("s3", "1", origin="more.csv"),)))
    again = Labels(
        labels=(label("s1", "0"),), read={"csv": frozenset({"labels.csv"}), "ci": frozenset({"s1"})}
    )
    for _ in range(2):
        put_labels(lake, again)
    known = [(row.session_id, row.value, row.source) for row in all_labels(lake)]
    assert known == [("s1", "0", "csv"), ("s3", "1", "csv"), ("s3", "no", "ci")]


def test_the_strongest_source_decides_and_a_commit_never(lake: Lake) -> None:
    one_of_people = [one for one in DECIDING if one not in ("view", "csv", "langfuse")]
    weakest_first: list[Source] = [*reversed(one_of_people)]
    for number, source in enumerate(weakest_first):
        put_labels(lake, Labels(labels=(label("s1", "yes" if number % 2 else "no", source),)))
        found = success_labels(lake, weakest_first)
        assert found["s1"][:2] == (bool(number % 2), source)
    put_labels(lake, Labels(labels=(label("s3", "yes", "commit"),)))
    assert "s3" not in success_labels(lake)


def test_people_who_disagree_are_settled_by_the_middle_and_the_worse_of_two(lake: Lake) -> None:
    said = [
        *(label("s1", value, rater=rater) for rater, value in zip("abc", "101", strict=True)),
        *(label("s3", value, rater=rater) for rater, value in zip("ab", "10", strict=True)),
        label("retry-queue", "complete", "person", name="task_completion"),
        label("s1", "0.9", name="code-reuse"),
        label("s1", "open", "pull-request"),
        label("nobody", "1"),
    ]
    put_labels(lake, Labels(labels=tuple(said)))
    assert {id_: found[:3] for id_, found in success_labels(lake).items()} == {
        "s1": (True, "csv", "s1"),
        "s2": (True, "person", "retry-queue"),
        "s3": (False, "csv", "s3"),
    }


def test_the_last_word_of_one_person_counts_in_whatever_order_it_is_read(lake: Lake) -> None:
    hours = ((10, "0"), (11, "1"), (9, "0"))
    said = [
        label("s1", value, "langfuse", rater="ada", detail=f"annotation {hour % 10}",
              observed_at=NOW.replace(hour=hour))
        for hour, value in hours
    ]  # fmt: skip
    put_labels(lake, Labels(labels=tuple(said)))
    assert success_labels(lake)["s1"][:3] == (True, "langfuse", "s1")


def test_labels_of_a_name_give_sessions_numbers_by_rater_and_however_they_are_written(
    lake: Lake,
) -> None:
    clarity: dict[str, Any] = {"name": "Clarity"}
    given = (
        label("s1", "4/5", rater="ada", **clarity),
        label("s1", "60%", rater="kim", line=1, **clarity),
        label("s1", "0.2", rater="kim", line=2, **clarity),
        label("s2", "yes", **clarity),
        label("s3", "rather good", **clarity),
        label("s9", "1", **clarity),
        label("s3", "1", name="success"),
    )
    put_labels(lake, Labels(labels=given))
    found = label_values(lake, {"clarity", "tone"})
    assert found == {"clarity": {"s1": pytest.approx(0.5), "s2": 1.0}, "tone": {}}
