"""Agreement as the orchestrator makes it: measured, failing closed, and asked for."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.agreement import agreement_suffices, judge_agreement
from debrief.rubrics.agreement import AGREEMENT, ALL, AgreementRow
from resources.services import EvaluatorResource
from resources.storage import LakeResource
from tests.assets.running import resources
from tests.rubrics.test_agreement import csv_of, ident, lake_with, planted

FRACTIONS = [0.1, 0.3, 0.5, 0.7, 0.9]
PAIRS = planted(0.75, 5, 1)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lake_with(tmp_path, [FRACTIONS[b] for _, b in PAIRS])
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    for name in ("DEBRIEF_LABELS", "DEBRIEF_FEEDBACK", "DEBRIEF_MIN_AGREEMENT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def made(place: Path) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [judge_agreement, agreement_suffices],
        resources=resources(
            str(place / "lake"), evaluator=EvaluatorResource(offline=True, repository=str(place))
        ),
        raise_on_error=False,
    )


def label(place: Path, monkeypatch: pytest.MonkeyPatch, upper: bool = False) -> None:
    rows = (
        (ident(n).upper() if upper else ident(n), "code-reuse", FRACTIONS[a])
        for n, (a, _) in enumerate(PAIRS)
    )
    monkeypatch.setenv("DEBRIEF_LABELS", csv_of(place, rows)["DEBRIEF_LABELS"])


def check_of(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    (check,) = result.get_asset_check_evaluations()
    return check


def test_planted_labels_give_the_planted_kappa_and_a_page(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    label(place, monkeypatch)
    result = made(place)
    assert result.success
    (row,) = LakeResource(url=str(place / "lake")).open().read(AGREEMENT, ALL, AgreementRow)
    assert row.kappa == pytest.approx(0.75, abs=5e-4)
    (event,) = result.get_asset_materialization_events()
    metadata = event.materialization.metadata
    assert (metadata["labels"].value, metadata["matched"].value) == (100, 100)
    assert "0.75 (" in str(metadata["agreement"].value)
    assert (place / "lake/reports/judge_agreement.md").is_file()


def test_ids_that_have_drifted_fail_the_run_and_say_so(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    label(place, monkeypatch, upper=True)
    result = made(place)
    assert not result.success
    (failure,) = result.filter_events(lambda event: event.is_step_failure)
    said = str(failure.event_specific_data)
    assert "100 labels of people: not one matches a scored session" in said
    assert "not one matches" in (place / "lake/reports/judge_agreement.md").read_text()
    assert f"{ident(0).upper()!r} looks like session {ident(0)}" in said


def test_without_labels_it_passes_and_says_how_to_label(place: Path) -> None:
    result = made(place)
    assert result.success
    assert check_of(result).passed
    assert "No labels of people yet" in (place / "lake/reports/judge_agreement.md").read_text()


@pytest.mark.parametrize(("minimum", "passed"), [("0.7", True), ("0.8", False)])
def test_an_agreement_that_is_asked_for_is_checked(
    place: Path, monkeypatch: pytest.MonkeyPatch, minimum: str, passed: bool
) -> None:
    label(place, monkeypatch)
    monkeypatch.setenv("DEBRIEF_MIN_AGREEMENT", minimum)
    assert check_of(made(place)).passed is passed


def test_an_agreement_that_is_asked_for_and_not_known_does_not_suffice(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_MIN_AGREEMENT", "0.1")
    check = check_of(made(place))
    assert not check.passed
    assert "no judge or dimension has labels" in str(check.metadata["shortfall"].value)


def test_feedback_files_of_the_repository_are_read(place: Path) -> None:
    for n in range(2):
        folder = place / ".debrief/sessions" / ident(n)
        folder.mkdir(parents=True)
        (folder / "human_feedback.md").write_text("Fine.\n\ncode-reuse: 0.9\n")
    result = made(place)
    (event,) = result.get_asset_materialization_events()
    assert event.materialization.metadata["matched"].value == 2
