"""Calibrated scores: from twenty labels on five tasks on, what a score is worth takes its place."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.store import Labels, outcome, put_labels
from debrief.rubrics.agreement_report import store_agreement
from debrief.rubrics.calibrating import Calibration, Calibrations, calibrations_in, calibrations_of
from debrief.rubrics.probes import Probe
from debrief.scoring.dimensions import OVERALL
from debrief.summary import content_of
from debrief.training.model import training_path
from debrief.view.assessment import read_assessment
from debrief.view.index import Index
from tests.training.lakes import TASK, lake_of, stored
from tests.training.scenario import FINGERPRINT, MONDAY, says, session, turn

WEEK = week_of(MONDAY)
NEW = "new"
"""A session that nobody labelled, scored as those are that failed."""
MARKS = {f"s{n:02d}": 0.6 + 0.015 * n for n in range(24)} | {NEW: 0.65}
"""A scorer that tells good work from bad, and calls all of it good: the upper half held."""
HELD = [id_ for id_ in MARKS if MARKS[id_] >= 0.77]


def world(folder: Path, labelled: int, task: str = "") -> Lake:
    sessions = [
        session(
            id_,
            turn(f"Do part {id_} of it, word{n}.", says(f"Part {id_} is done, word{n}.")),
            started=MONDAY + timedelta(minutes=n),
            repository=id_,
        )
        for n, id_ in enumerate(MARKS)
    ]
    lake = lake_of(folder, sessions, MARKS)
    ids = [id_ for pair in zip(HELD, MARKS, strict=False) for id_ in pair]
    ids = [id_ for id_ in dict.fromkeys([*ids, *MARKS]) if id_ != NEW][:labelled]
    labels = tuple(outcome(id_, "person", id_ in HELD, "", "", None, task or id_) for id_ in ids)
    put_labels(lake, Labels(labels=labels))
    return lake


def test_with_twenty_labels_the_calibrated_number_is_sorted_filtered_shown_and_trained_on(
    tmp_path: Path,
) -> None:
    lake = world(tmp_path / "lake", labelled=22)
    index = Index(lake, tmp_path / "index")
    index.refresh()
    assert index.find(NEW).quality == pytest.approx(0.65)
    assert index.find(NEW).raw_quality is None
    assert NEW in read_lines(lake, min_overall_quality=0.5)
    store_agreement(lake)
    index.refresh()
    row = index.find(NEW)
    assert (row.quality or 0) < 0.2
    assert row.raw_quality == pytest.approx(0.65)
    assert (index.find(HELD[-1]).quality or 0) > 0.9
    assert NEW in {row.id for row in index.sessions("quality < 0.5")}
    shown = read_assessment(lake, WEEK, NEW).mean_shown
    assert "calibrated by 22 labels; raw 0.65" in shown
    assert sum(content_of(lake, [WEEK]).qualities) / len(MARKS) == pytest.approx(0.48, abs=0.08)
    assert NEW not in read_lines(lake, min_overall_quality=0.5)
    (quality, raw) = read_lines(lake)[NEW]
    assert quality < 0.2
    assert raw == pytest.approx(0.65)


def read_lines(lake: Lake, **options: Any) -> dict[str, tuple[float, float | None]]:
    """Make the training set; return calibrated and raw quality of each line's session."""
    stored(lake, near_duplicates="keep", **options)
    data = lake.read_bytes(training_path(TASK, FINGERPRINT)) or b""
    found = {}
    for line in map(json.loads, data.decode().splitlines()):
        said = {each["name"]: each["value"] for each in line["metadata"]["scores"]}
        raw = said.get("raw_overall_quality")
        found[line["metadata"]["session_id"]] = said["overall_quality"], raw
    return found


@pytest.mark.parametrize(("labelled", "task"), [(19, ""), (22, "one task of all")])
def test_with_fewer_labels_or_tasks_numbers_are_shown_as_they_were_given(
    tmp_path: Path, labelled: int, task: str
) -> None:
    lake = world(tmp_path / "lake", labelled, task)
    store_agreement(lake)
    assert calibrations_in(lake) == Calibrations()
    assert read_assessment(lake, WEEK, NEW).mean_shown == "0.65"
    quality, raw = read_lines(lake)[NEW]
    assert quality == pytest.approx(0.65)
    assert raw is None


def probe(**fields: object) -> Probe:
    given = {
        **{"kind": "dimension", "name": OVERALL, "judged_by": "m", "fingerprint": "f"},
        **{"labels": "people", "labelled": 30, "brier": 0.2, "brier_calibrated": 0.1},
        "calibration": ((0.0, 0.0), (1.0, 0.5)),
        **fields,
    }
    return Probe(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "applies"),
    [
        ({}, True),
        ({"labels": "success"}, True),
        ({"kind": "judge", "name": "care"}, True),
        ({"kind": "judge", "name": "care", "labels": "success"}, False),
        ({"name": "security_compliance", "labels": "success"}, False),
        ({"brier_calibrated": 0.21}, False),
        ({"calibration": ()}, False),
        ({"kind": "rubric", "name": "excellence/x"}, False),
    ],
)
def test_a_calibration_applies_where_it_comes_closer_and_labels_mean_the_score(
    fields: dict[str, object], applies: bool
) -> None:
    assert bool(calibrations_of([probe(**fields)]).by_measure) == applies


def test_between_two_points_the_worth_is_on_the_line_and_beyond_them_it_stays() -> None:
    known = Calibration(points=((0.4, 0.1), (0.8, 0.9)), labelled=20)
    assert [known.worth(score) for score in (0.0, 0.4, 0.6, 0.8, 1.0)] == pytest.approx(
        [0.1, 0.1, 0.5, 0.9, 0.9]
    )
